"""What a thread was given is read without a change for the threads that start later."""

from __future__ import annotations

import threading

from weft.support.stack import USUAL_STACK, reachable_stack, stack_bytes

MIB = 1 << 20


def _in_a_thread_of(size: int, action: object) -> list[object]:
    found: list[object] = []
    before = threading.stack_size(size)
    try:
        thread = threading.Thread(target=lambda: found.append(action()))  # type: ignore[operator]
        thread.start()
        thread.join()
        found.append(threading.stack_size(before))
    finally:
        threading.stack_size(before)
    return found


def test_the_stack_that_a_user_set_for_threads_is_read_and_stays() -> None:
    asked = _in_a_thread_of(MIB, lambda: [stack_bytes(), stack_bytes(), reachable_stack()])
    assert asked == [[MIB, MIB, USUAL_STACK], MIB]
