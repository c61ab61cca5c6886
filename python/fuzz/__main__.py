"""``python -m fuzz``: draws programs, runs them in every way, and prints what is wrong as small programs."""

import argparse
import collections
import random
import re
import sys
import time

from . import draw, jobs, program
from .check import Finding, check
from .shrink import shrunk


def examined(seed, peer=None):
    """The finding of a seed's program with the program, or ``None``; and what was refused."""
    try:
        made, refusals = draw.program(seed)
    except draw.Panicked as panicked:
        return (panicked.program, Finding("panic", str(panicked))), []
    if made is None:
        return None, refusals
    try:
        check(made, random.Random(seed))
        if peer is not None:
            peer.check(made)
    except Finding as finding:
        return (made, finding), refusals
    finally:
        program.forget_sources()
    return None, refusals


def small(seed, made, finding, peer=None):
    """The program made small: the same promise is still broken."""
    def fails(candidate):
        try:
            check(candidate, random.Random(seed))
            if peer is not None:
                peer.check(candidate)
        except Finding as other:
            return _family(other) == _family(finding)
        except Exception:
            return False
        finally:
            program.forget_sources()
        return False

    return shrunk(made, fails)


def _family(finding):
    return finding.kind.split(" with a budget")[0]


def examine(seeds, chosen, tell):
    """Runs the programs of some seeds; ``tell(seed, refusals, finding, text)`` says of each whether to go on."""
    peer = None
    if chosen.tensorflow:
        from . import peer
    left_out = re.compile(chosen.leave_out)
    for seed in seeds:
        failure, refusals = examined(seed, peer)
        refusals = [f"{op}: {type(error).__name__}: {str(error)[:90]}" for op, _, error in refusals]
        kind = text = None
        if failure is not None and not left_out.search(str(failure[1])):
            made, finding = failure
            smaller = made if chosen.no_shrink else small(seed, made, finding, peer)
            kind, text = _family(finding), f"== seed {seed}\n{smaller.script(str(finding))}\n"
        if not tell(seed, refusals, kind, text):
            return


def main(words=None):
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--graphs", type=int, default=1000, help="how many programs")
    parser.add_argument("--jobs", type=int, default=0, metavar="N",
                        help=f"so many processes at a time, of {jobs.SHARE} programs at most each; one that dies is a finding")
    parser.add_argument("--tensorflow", action="store_true", help="compare each op with TensorFlow, which has to be installed")
    parser.add_argument("--most", type=int, default=20, help="stop after so many findings")
    parser.add_argument("--no-shrink", action="store_true", help="print programs as they were drawn")
    parser.add_argument("--leave-out", default="$^", metavar="PATTERN", help="findings that match are not reported")
    chosen = parser.parse_args(words)
    kinds, refused, start, done = collections.Counter(), collections.Counter(), time.monotonic(), 0

    def tell(_, refusals, kind, text):
        nonlocal done
        done += 1
        refused.update(refusals)
        if kind is not None:
            kinds[kind] += 1
            print(text, flush=True)
        if done % 500 == 0:
            print(f"{done} programs, {kinds.total()} findings", file=sys.stderr, flush=True)
        return kinds.total() < chosen.most

    if chosen.jobs:
        jobs.run(chosen, tell)
    else:
        examine(range(chosen.seed, chosen.seed + chosen.graphs), chosen, tell)
    for text, count in refused.most_common(10):
        print(f"refused {count} times: {text}")
    print(f"{done} programs in {time.monotonic() - start:.0f} s, {kinds.total()} findings"
          + "".join(f"; {count} {kind}" for kind, count in kinds.most_common()))
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
