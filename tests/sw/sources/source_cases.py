"""Judge of random programs: definition = golden = emulator = RTL by bytes, or a clear refusal."""

from hw.arch.errors import BadInputError, TilewrightError
from sim.campaign.case import Verdict
from sim.campaign.cases.program_case import refusal_faults
from sim.run.driver import compile_job, run
from sim.run.job import Job
from tests.sw.sources.eager_language import computed
from tests.sw.sources.random_sources import inputs_of, problem_of_source

__all__ = ["MOST_CYCLES", "judge_source"]

#: What a crash of the compiler may raise.
FAULTS = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError),
    *(NameError, RuntimeError, SyntaxError, TypeError, ValueError),
)
#: Most cycles predicted of a run on the RTL.
MOST_CYCLES = 40_000


def judge_source(fields, *, rtl=False):
    """Verdict on a program; its counts have the programs of each back end."""
    try:
        problem = problem_of_source(fields)
    except BadInputError as error:
        return Verdict("refused", (f"language refuses the program: {error.message}",))
    except FAULTS as error:
        return Verdict("fault", (f"language: {type(error).__name__}: {error}",))
    inputs = inputs_of(fields, problem)
    try:
        job = Job(problem, backend="emulator", inputs=inputs, seed=fields["memory"])
        compiled, report = compile_job(job)
    except BadInputError as error:
        # What is not served yet is named by its line, without a value.
        return Verdict("refused", () if error.kind == "unserved" else refusal_faults(error))
    except FAULTS as error:
        return Verdict("fault", (f"compiler: {type(error).__name__}: {error}",))
    outputs = {each.name: (each.shape, each.format.dtype) for each in problem.outputs}
    text = "\n".join(fields["lines"])
    try:
        wanted = computed(text, "drawn", inputs, outputs, problem.config.pcu.function_bits)
    except FAULTS as error:
        return Verdict("fault", (f"definition: {type(error).__name__}: {error}",))
    counts = {"programs": 1, f"parts {len(compiled.parts)}": 1}
    backends = ["emulator"]
    if rtl and compiled.predicted_cycles <= MOST_CYCLES:
        backends.append("rtl")
    problems = []
    for backend in backends:
        job = Job(problem, backend=backend, inputs=inputs, seed=fields["memory"])
        counts[backend] = 1
        try:
            outcome = run(job, compiled, report)
        except (TilewrightError, RuntimeError) as error:
            problems.append(f"{backend} ends with {type(error).__name__}: {error}")
            break
        for name, array in outcome.outputs.items():
            if array.tobytes() != wanted[name].tobytes():
                problems.append(f"{backend} differs from the definition: {name}")
        problems += [f"{backend} {each}" for each in outcome.problems]
        if problems:
            break
    return Verdict("wrong" if problems else "right", tuple(problems), counts=counts)
