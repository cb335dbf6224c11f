"""How the server serves, and what it saw."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

from dris.lab.fci.faults import Faults

LONGEST_PATIENCE_S = 0.9


@dataclass(frozen=True)
class ServerConfig:
    """How it serves."""

    address: str = "127.0.0.1"
    """To listen on; loopback only. Clients know no other port than 1337, so a second robot takes another
    address, 127.0.0.2 for instance."""
    pace: float = 1.0
    """Robot seconds per second at most while a motion runs; `inf` is as fast as it goes. Otherwise 1."""
    patience_s: float = 0.1
    """How long a command is waited for before it counts as lost [s]. 20 in a row stop the motion."""
    faults: Faults = field(default_factory=Faults)

    def __post_init__(self) -> None:
        """Refuse addresses that others could reach, and paces that stand still."""
        try:
            loopback = ipaddress.IPv4Address(self.address).is_loopback
        except ValueError:
            loopback = False
        if not loopback:
            raise ValueError(
                f"address must be a loopback address, 127.0.0.1 for instance, got '{self.address}': "
                "the server trusts whoever connects"
            )
        if not self.pace > 0:
            raise ValueError(f"pace must be positive, got {self.pace}")
        if not 0 < self.patience_s <= LONGEST_PATIENCE_S:
            raise ValueError(
                f"patience_s must lie in (0, {LONGEST_PATIENCE_S}] s, got {self.patience_s}: "
                "clients wait for a state no longer than a second"
            )


@dataclass
class Counts:
    """What the server saw."""

    ticks: int = 0
    commands: int = 0
    """That were obeyed."""
    missed: int = 0
    """States of a motion without a command."""
    stale: int = 0
    """Commands to another state than the last."""
    malformed: int = 0
    """Datagrams that are no command, and connections closed for bytes that are no request."""
    refused: int = 0
    """Clients that came while another was there."""
