"""Scenarios of containers: processes that are all pid 1, each of a namespace of its own, in one text log.

Root records them, by ``unshare`` of util-linux. Where containers have a name before their lines, record.py writes it as
``docker compose logs`` and ``kubectl logs --prefix`` do, line by line as they come.
"""

from recording_scenarios import EPILOGUE_OFF, Scenario, Step, functions

ONE = functions("matmul_relu")
SERVE = functions("block", "head")
SCORE = functions("block", "tail")


def container(name: str, differs: str, *arguments: str, lead: str = "", script: str) -> Step:
    return Step(name, differs, ("functions", *arguments), log="all.log", script=script, lead=lead)


def two_services(name: str, by: str, serve: tuple[str, ...], score: tuple[str, ...]) -> Scenario:
    """Two programs at once, three times, with what stands before their lines each time."""
    steps = (
        ("serve", "empty cache directory", SERVE, "score", "empty cache directory"),
        ("serve_fusion_off", "options epilogue_fusion=False", (*SERVE, *EPILOGUE_OFF), "score_again", "nothing"),
        ("serve_back", "as at first", SERVE, "score_once_more", "nothing"),
    )  # fmt: skip
    groups = tuple(
        (
            container(one, differs, *arguments, lead=serve_lead, script="serve.py"),
            container(other, other_differs, *SCORE, lead=score_lead, script="score.py"),
        )
        for (one, differs, arguments, other, other_differs), serve_lead, score_lead in zip(
            steps, serve, score, strict=True
        )
    )
    return Scenario(name, f"serve.py and score.py at once in one stream, as {by}", groups)


PROGRAM = "record_programs.py"
RESTARTED = Scenario("restarted_container",
    "one container, restarted twice: one stream of lines, always pid 1",
    (
        (container("cold", "first process", *ONE, script=PROGRAM),),
        (container("restarted", "config epilogue_fusion off", *ONE, *EPILOGUE_OFF, script=PROGRAM),),
        (container("restarted_again", "as the first", *ONE, script=PROGRAM),),
    ))  # fmt: skip
CONTAINERS = (
    RESTARTED,
    two_services("two_services", "docker compose logs prints it; both restarted twice",
        ("serve-1  | ",) * 3,
        ("score-1  | ",) * 3),
    two_services("two_services_pods", "kubectl logs --prefix prints it; new pods twice",
        tuple(f"[pod/serve-6d4b75cb6d-{end}/serve] " for end in ("hqkx2", "9zv7t", "m2w8d")),
        tuple(f"[pod/score-7f9c5c6b4-{end}/score] " for end in ("tq4sn", "xk5l6", "b8rjp"))),
)  # fmt: skip
