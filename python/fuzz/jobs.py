"""The seeds of ``python -m fuzz --jobs``, in shares: each has a process of its own, so that what a process keeps of all that
it ran, as TensorFlow's does, is gone with it; and one that dies takes no other seed with it."""

import multiprocessing
import multiprocessing.connection

# One process runs so many programs at most.
SHARE = 500


def _work(seeds, chosen, pipe):
    """Tells of each seed through a pipe."""
    from .__main__ import examine

    def tell(*told):
        pipe.send(told)
        return True

    examine(seeds, chosen, tell)


class _Share:
    """Seeds that a process runs in their order; ``left`` are those that it did not tell of."""

    def __init__(self, seeds, chosen):
        context = multiprocessing.get_context("spawn")
        self.left = list(seeds)
        self.pipe, far = context.Pipe(duplex=False)
        self.process = context.Process(target=_work, args=(self.left, chosen, far), daemon=True)
        self.process.start()
        # The process has the only other end: when it ends, so does the pipe.
        far.close()

    def told(self):
        """What it tells next, or ``None`` at its end."""
        try:
            told = self.pipe.recv()
        except EOFError:
            return None
        self.left.remove(told[0])
        return told

    def end(self):
        self.process.kill()
        self.process.join()
        self.pipe.close()


def run(chosen, tell):
    """Examines all seeds, as many shares at a time as there are jobs, until ``tell`` says to stop."""
    last = chosen.seed + chosen.graphs
    size = max(1, min(SHARE, -(-chosen.graphs // chosen.jobs)))
    waiting = [range(first, min(first + size, last)) for first in range(chosen.seed, last, size)][::-1]
    running = []
    try:
        while waiting or running:
            while waiting and len(running) < chosen.jobs:
                running.append(_Share(waiting.pop(), chosen))
            ready = multiprocessing.connection.wait([share.pipe for share in running])
            for share in [share for share in running if share.pipe in ready]:
                told = share.told()
                if told is None:
                    share.process.join()
                    running.remove(share)
                    told = _death(share, waiting)
                if told is not None and not tell(*told):
                    return
    finally:
        for share in running:
            share.end()


def _death(share, waiting):
    """What to tell of a process that ended: nothing, or that it died of a seed. Those behind it wait for another one."""
    share.pipe.close()
    if not share.left:
        return None
    seed, *others = share.left
    if others:
        waiting.append(others)
    return seed, [], "crash", f"== seed {seed}\n# The process ended with {share.process.exitcode}.\n"
