"""What the screen uses of Textual without a promise: one test for each, so that an upgrade says what to look at."""

from __future__ import annotations

import asyncio
import inspect

from textual import app as textual_app
from textual import screen as textual_screen
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._keyboard_protocol import FUNCTIONAL_KEYS
from textual._xterm_parser import XTermParser
from textual.drivers._writer_thread import WriterThread
from textual.drivers.linux_driver import LinuxDriver
from textual.events import MouseDown
from textual.keys import KEY_NAME_REPLACEMENTS, _character_to_key
from textual.widget import Widget

from tests.tui.app.stage import stage


def test_a_frame_begins_and_ends_by_two_methods_that_may_be_replaced() -> None:
    source = inspect.getsource(textual_app.App._display)
    assert "self._begin_update()" in source and "self._end_update()" in source


def test_a_frame_puts_the_cursor_where_the_application_says() -> None:
    assert "self.cursor_position" in inspect.getsource(textual_app.App._display)


def test_the_state_that_forbids_writing_directly_is_there() -> None:
    async def run() -> None:
        async with stage() as on:
            assert on.app._batch_count == 0 and on.app._running and on.app._driver is not None
            assert on.app.screen._layout_required is False
            assert on.app.screen._dirty_widgets is not None
            assert on.app._driver.is_headless

    asyncio.run(run())


def test_the_frame_timer_refreshes_what_is_dirty() -> None:
    assert "_dirty_widgets" in inspect.getsource(textual_screen.Screen._on_timer_update)


def test_widgets_are_asked_for_rows_by_render_lines() -> None:
    assert list(inspect.signature(Widget.render_lines).parameters) == ["self", "crop"]


def test_the_driver_starts_its_input_by_a_method_that_may_be_replaced() -> None:
    assert "self.run_input_thread()" in inspect.getsource(LinuxDriver._run_input_thread)
    source = inspect.getsource(LinuxDriver)
    for name in ("_enable_mouse_support", "_request_terminal_sync_mode_support", "exit_event", "_key_thread"):
        assert name in source


def test_the_writer_takes_text_and_stops_when_all_is_written() -> None:
    assert list(inspect.signature(WriterThread.write).parameters) == ["self", "text"]
    assert "join" in inspect.getsource(WriterThread.stop)


def test_messages_reach_the_application_by_a_coroutine() -> None:
    assert inspect.iscoroutinefunction(textual_app.App._post_message)


def test_the_tables_of_keys_and_the_mouse_parser_are_there() -> None:
    for data, name in {"\x01": "ctrl+a", "\x1b[[A": "f1"}.items():
        keys = ANSI_SEQUENCES_KEYS[data]
        assert isinstance(keys, tuple) and keys[0].value == name
    assert FUNCTIONAL_KEYS["57414u"] == "enter"
    assert KEY_NAME_REPLACEMENTS.get(_character_to_key("/"), _character_to_key("/")) == "slash"
    assert isinstance(XTermParser().parse_mouse_code("\x1b[<0;3;4M"), MouseDown)


def test_a_failure_is_kept_and_its_report_can_be_left_out() -> None:
    assert "_exception" in inspect.getsource(textual_app.App._handle_exception)
    assert callable(textual_app.App._print_error_renderables)
