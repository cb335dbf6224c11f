"""The verb `view`: a page with a policy to throw things at."""

import sys

import tyro

from dris.core import validation


def view(
    policy: tyro.conf.Positional[str] = "dris-200",
    port: int = 8080,
    host: str = "127.0.0.1",
    seed: int = 0,
    task: str | None = None,
) -> int:
    """Open a page with the robot in 3-D and throw balls at a policy. Ends when interrupted.

    Args:
        policy: Who acts at first: a baseline (veltrack), a policy that ships (dris-200), a run folder or a
            file. Its task must have a stage: catching has.
        port: Of the page.
        host: Address to serve on. Any but 127.0.0.1 lets other machines in, without a password.
        seed: Of the first throw; every throw has the next.
        task: Where the policy's task is now, if not where its file says; whose baseline, too.
    """
    validation.check_seed(seed)
    validation.check_extra("viser", "view")
    from dris.core.process import set_threads
    from dris.view.serve import check_address, serve, session_of

    set_threads(1)  # one set keeps no second thread busy
    warning = check_address(host, port)
    session = session_of(policy, task, seed)
    if warning:
        print(f"dris: {warning}", file=sys.stderr)
    serve(session, host, port, lambda: print(f"page     http://{host}:{port}", flush=True))
    return 0
