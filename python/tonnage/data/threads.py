"""Threads that make elements ahead of time. They end with the pass that started them, also where that is given up halfway."""

import collections
import concurrent.futures
import os
import queue
import threading

from .. import _tonnage as _t


def workers(parallel):
    """How many threads are asked for."""
    if parallel is None:
        return 1
    parallel = int(parallel)
    if parallel == -1:
        return max(2, min(16, os.cpu_count() or 2))
    if parallel <= 0:
        raise ValueError(f"`num_parallel_calls` must be positive or tf.data.AUTOTUNE. Received: {parallel}")
    return parallel


def mapped(function, items, count, in_order):
    """What a function makes of items, so many at a time."""
    with concurrent.futures.ThreadPoolExecutor(count, thread_name_prefix="tonnage-data") as pool:
        running = collections.deque()
        try:
            for item in items:
                running.append(pool.submit(function, item))
                if len(running) >= 2 * count:
                    yield _next(running, in_order)
            while running:
                yield _next(running, in_order)
        finally:
            for future in running:
                future.cancel()


def _next(running, in_order):
    if in_order:
        return running.popleft().result()
    done, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
    first = next(f for f in running if f in done)
    running.remove(first)
    return first.result()


_END = object()


def ahead(make, count):
    """What an iterator gives, so many elements ahead of who asks. ``make`` makes the iterator, on the thread that goes through it."""
    ready, stop = queue.Queue(maxsize=count), threading.Event()

    def put(item):
        while not stop.is_set():
            try:
                ready.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def run():
        try:
            for item in make():
                if not put((item, None)):
                    return
            put((_END, None))
        except BaseException as error:  # noqa: BLE001: who asks for the next element gets it
            put((_END, error))

    thread = threading.Thread(target=run, name="tonnage-prefetch", daemon=True)
    thread.start()
    try:
        while True:
            item, error = ready.get()
            if error is not None:
                raise error
            if item is _END:
                return
            yield item
    finally:
        stop.set()
        if not _t.is_tracing():
            thread.join(timeout=5.0)
