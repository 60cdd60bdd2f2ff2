"""Errors that real providers answered with: each becomes the failure that a person would expect."""

import pytest
from narrow import message_of
from recorded import Recording, needs_recordings, of_kind

from turnkeeper.core.retry import retryable
from turnkeeper.model.failure import ApiFailure, AuthFailure, Failure
from turnkeeper.providers import codec_of
from turnkeeper.providers.endpoint import Endpoint

RECORDED = of_kind("err")


def failure_of(recording: Recording) -> Failure:
    endpoint = Endpoint(protocol=recording.protocol, provider_id=recording.family, base_url="https://host/v1")
    body = recording.body().decode()
    return codec_of(recording.protocol).failure(recording.status, recording.headers, body, endpoint)


def is_about(recording: Recording, word: str) -> bool:
    return word in recording.body().decode()


@needs_recordings
@pytest.mark.parametrize("recording", RECORDED, ids=lambda one: one.id)
def test_a_recorded_error_is_typed_and_tried_again_only_where_that_helps(recording: Recording) -> None:
    failure = failure_of(recording)
    if recording.status == 401 or is_about(recording, "API_KEY_INVALID"):
        assert isinstance(failure, AuthFailure)
        return
    assert isinstance(failure, ApiFailure)
    is_passing = recording.status in (429, 500, 502, 503, 529) or is_about(recording, "tool_use_failed")
    assert (retryable(failure) is not None) is is_passing


@needs_recordings
@pytest.mark.parametrize("recording", RECORDED, ids=lambda one: one.id)
def test_a_recorded_error_says_more_than_its_status(recording: Recording) -> None:
    message = message_of(failure_of(recording))
    assert " " in message
    assert "Provider returned error" not in message
    if is_about(recording, '"not_found_error"'):
        assert "does not have" in message
