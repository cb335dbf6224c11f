"""The domain: named ranges of the physical parameters that differ from instance to instance."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # ranges alone need no torch, and a control path imports them
    import torch

    from dris.core.rng import KeyedRng


@dataclass(frozen=True)
class Range:
    """Values a parameter can take, uniformly: [low, high] in `unit`."""

    low: float
    high: float
    unit: str
    meaning: str = ""

    def __post_init__(self) -> None:
        """Refuse ranges that hold no value."""
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            raise ValueError(f"a range must be finite, got [{self.low}, {self.high}]")
        if self.low > self.high:
            raise ValueError(f"range [{self.low}, {self.high}] is reversed: the lower end must come first")


class Domain(Mapping[str, Range]):
    """The paper's domain space C: an ordered mapping from parameter name to its range."""

    def __init__(self, ranges: Mapping[str, Range]):
        if not ranges:
            raise ValueError("a domain needs at least one parameter: nothing would differ")
        self._ranges = dict(ranges)

    def __getitem__(self, name: str) -> Range:
        if name not in self._ranges:
            raise KeyError(f"unknown domain parameter '{name}'; known: {', '.join(self)}")
        return self._ranges[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._ranges)

    def __len__(self) -> int:
        return len(self._ranges)

    def __repr__(self) -> str:
        rows = (f"{n} in [{r.low:g}, {r.high:g}] {r.unit}".rstrip() for n, r in self.items())
        return f"Domain({'; '.join(rows)})"

    def sample(self, rng: KeyedRng, instances: int, others: Domain | None = None) -> torch.Tensor:
        """Draw the parameters of N instances for each of R sets: [R, N, P].

        Parameter values of instance i do not depend on N: larger sets only add instances.

        Args:
            rng: Of the R sets.
            instances: N.
            others: Ranges of all instances but the first, if they have their own.
        """
        share = rng.uniform(instances, len(self))
        found = self._at(share)
        if others is not None:
            found[:, 1:] = others._at(share[:, 1:])
        return found

    def _at(self, share: torch.Tensor) -> torch.Tensor:
        """Values [..., P] at shares of the ranges."""
        low, high = (share.new_tensor([getattr(r, end) for r in self.values()]) for end in ("low", "high"))
        return low + (high - low) * share

    def column(self, parameters: torch.Tensor, name: str) -> torch.Tensor:
        """The values of one parameter: [..., P] to [...]."""
        self[name]
        return parameters[..., list(self).index(name)]

    def shifted(self, **ranges: tuple[float, float]) -> Domain:
        """The same domain with some ranges replaced, for evaluation outside the training range.

        Raises:
            KeyError: A name is not in the domain; the message lists those that are.
            ValueError: A range is reversed or not finite.
        """
        new = dict(self._ranges)
        for name, (low, high) in ranges.items():
            old = self[name]
            new[name] = Range(low, high, old.unit, old.meaning)
        return Domain(new)
