"""Rewards by a function of one's own, `package.module:function`, in the killable processes of a CheckPool.

    def brevity(response, ground_truth): return -len(response) / 1000                # of one response
    def rank(responses, ground_truth, difficulty): return [...]                      # of a whole group

A parameter receives what its name says; the function names those that it wants, or takes all others with **columns:

    response        text of one response (also as solution_str, as in verl); the function returns one number
    responses       texts of all responses to the prompt; the function returns as many numbers
    prompt          text or chat messages, as put to the model
    ground_truth, data_source, and every column of the question's row (as in TRL)

A call that raises, crashes, hangs or returns anything but finite numbers gives its responses the reward 0 and is
counted in `failures`: a whole group then has no signal. `errors` has the traceback of the first that raised.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from .pool import CheckPool
from .scoring import GROUP


class RewardFunction(CheckPool):
    """Pool whose check is a reward function; `timeout` is for the responses of a group together."""

    def score(self, groups: Sequence[Mapping[str, Any]]) -> list[list[float]]:
        """Return the rewards of each group's responses.

        groups: arguments of the function, `responses` among them. Values that JSON does not know are sent as text.
        """
        items = [json.loads(json.dumps(dict(group), default=str)) for group in groups]
        found = []
        for group, reply in zip(groups, self.ask(items), strict=True):
            lost = reply["lost"] if "lost" in reply else [reply["failure"]] * len(group[GROUP])
            for kind in filter(None, lost):
                self.failures[kind] += 1
            found.append(reply.get("scores", [0.0] * len(lost)))
        return found
