"""What holds for all tests."""

import signal

# A shell starts background jobs with interrupts ignored, and Python then sets no handler: tests that interrupt would wait
# for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)
