"""Scenarios of compiles that were never stored: they failed, their process ended, or nothing could be written.

Each is followed by the same program again, which compiles anew, and once more, which hits.
"""

from dataclasses import replace

from recording_scenarios import Scenario, Step, functions, scenario, step

FAILING = "failing_programs.py"


def harmed(name: str, differs: str, what: str, where: str, returns: int, program: str = "functions") -> Step:
    """A step of failing_programs.py."""
    return Step(name, differs, (what, where, program), script=FAILING, returns=returns)


def then_twice(name: str, summary: str, first: Step, program: str = "functions") -> Scenario:
    """A step that comes to harm, and the same program twice without it."""
    return scenario(
        name,
        summary,
        first,
        step("again", "no harm comes to it", program=program),
        step("warm", "nothing", program=program),
    )


def other_user(one: Step, returns: int = 0, before: str | None = None) -> Step:
    return replace(one, is_other_user=True, returns=returns, before=before)


CODEGEN = then_twice("failed_codegen", "Inductor raises while it generates code",
    harmed("failing", "empty cache directory; GraphLowering.codegen raises ValueError", "raise", "forward",
        1))  # fmt: skip
BACKWARD = then_twice("failed_backward", "Inductor raises while it generates the code of the backward graph",
    harmed("failing", "empty cache directory; its code generation raises", "raise", "backward", 1,
        "training"),
    "training")  # fmt: skip
KILLED = then_twice("killed_compiling", "SIGKILL while code is generated",
    harmed("killed", "empty cache directory; SIGKILL in GraphLowering.codegen", "kill", "forward", -9))  # fmt: skip
INTERRUPTED = then_twice("interrupted", "Ctrl-C while code is generated",
    harmed("interrupted", "empty cache directory; SIGINT in GraphLowering.codegen", "interrupt", "forward",
        -2))  # fmt: skip
TWO = functions("matmul_relu", "softmax_rows")
INTERRUPTED_SECOND = scenario("interrupted_second",
    "Ctrl-C while the code of the second of two functions is generated: the first is stored",
    replace(
        harmed("interrupted", "empty cache directory; SIGINT in the second codegen", "interrupt", "second",
            -2),
        arguments=("interrupt", "second", "functions", *TWO)),
    step("again", "no harm comes to it", *TWO),
    step("warm", "nothing", *TWO))  # fmt: skip
FAILED_COMPILER = then_twice("failed_compiler", "the C++ compiler ends with an error",
    harmed("failing", "empty cache directory; a g++ that exits with 1", "compiler", "nowhere", 1))  # fmt: skip
OTHER_OWNER = scenario("other_owner", "a cache of root's, used by another user, then given to all",
    step("root", "empty cache directory"),
    other_user(
        harmed("nobody", "another user, who may read all and write nothing", "raise", "nowhere", 1),
        returns=1),
    other_user(step("writable", "the same user, who may write now"), before="writable"))  # fmt: skip


def entries_not_writable(*cannot: Step) -> Scenario:
    """Two steps of a user who may write code and no entries, and two when entries may be written too."""
    first, second = map(other_user, cannot)
    return scenario(
        "entries_not_writable",
        "another user may write code and no entries: twice; then entries too: twice",
        replace(
            first,
            differs="empty folders fxgraph and aotautograd of root's",
            before="entries_not_writable",
            returns=cannot[0].returns,
        ),
        replace(second, returns=cannot[1].returns),
        other_user(step("writable", "the user may write everywhere"), before="writable"),
        other_user(step("warm", "nothing")),
    )


UNSAVED_EVERYWHERE: tuple[Scenario, ...] = (
    CODEGEN, BACKWARD, KILLED, INTERRUPTED, INTERRUPTED_SECOND, FAILED_COMPILER, OTHER_OWNER,
)  # fmt: skip
ENTRIES_NOT_WRITABLE = entries_not_writable(step("first", ""), step("second", "nothing"))
# 2.6 fails where it cannot write an AOTAutograd entry.
ENTRIES_NOT_WRITABLE_2_6 = entries_not_writable(
    *(harmed(name, "nothing", "raise", "nowhere", 1) for name in ("first", "second")))  # fmt: skip

UNSAVED: tuple[Scenario, ...] = (
    *UNSAVED_EVERYWHERE,
    ENTRIES_NOT_WRITABLE,
    then_twice("failed_suppressed", "Inductor raises, and Dynamo goes on without compiling",
        harmed("failing", "empty cache directory; suppress_errors=True, codegen raises", "suppress",
            "forward", 0)),
    then_twice("exited_compiling", "os._exit while code is generated",
        harmed("exited", "empty cache directory; os._exit(3) in GraphLowering.codegen", "exit", "forward", 3)),
    then_twice("killed_before_save", "SIGKILL when the AOTAutograd entry would be stored: the FX entry is",
        harmed("killed", "empty cache directory; SIGKILL in AOTAutogradCache.save", "kill", "save", -9)),
    then_twice("killed_after_forward", "training, SIGKILL before the backward is compiled",
        harmed("killed", "empty cache directory; SIGKILL after the forward", "kill", "call", -9, "training"),
        "training"),
    scenario("read_only_directory", "a directory that may not be written to, then one that may: twice",
        other_user(
            harmed("read_only", "empty cache directory of root's", "raise", "nowhere", 1),
            returns=1,
            before="not_writable"),
        other_user(step("writable", "the user may write"), before="writable"),
        other_user(step("warm", "nothing"))),
    scenario("disk_full", "no space is left; then there is: twice",
        replace(
            harmed("full", "empty cache directory on a full disk", "raise", "nowhere", 1),
            before="disk_full"),
        replace(step("room", "space was made"), before="disk_with_room"),
        step("warm", "nothing")),
    scenario("fxgraph_full", "no space is left for FX entries only: twice; then there is: twice",
        replace(step("full", "empty cache directory, fxgraph on a full disk"), before="fxgraph_full"),
        step("full_again", "nothing"),
        replace(step("room", "space was made"), before="fxgraph_with_room"),
        step("warm", "nothing")),
)  # fmt: skip
