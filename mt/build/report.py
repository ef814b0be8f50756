"""Report of a build, in Markdown: quality, speed and size of each model, and duration of each stage."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from mt.build.runner import Record, Runner, score
from mt.build.stage import Stage
from mt.checkpoint import read_description
from mt.files import atomic_file


def write_report(name: str, stages: Sequence[Stage], runner: Runner) -> Path:
    """Write the report `report.md` of the build `name`, whose `stages` the runner ran, and return its path."""
    records = {stage.name: record for stage in stages if (record := runner.record(stage.name))}
    parts = [
        f"# Build {name}\n",
        models_table(stages, records, runner.work),
        teachers_table(stages, records, runner),
        stages_table(stages, records),
    ]
    with atomic_file(runner.work / "report.md") as file:
        file.write_text("\n".join(parts), encoding="utf-8")
    return runner.work / "report.md"


def models_table(stages: Sequence[Stage], records: Mapping[str, Record], work: Path) -> str:
    """Return the table of the published models: scores on each test set, speed and size.

    `records` are the records of the stages by name, and `work` is the folder of the build.
    """
    rows: list[tuple[str, ...]] = []
    signatures: dict[str, None] = {}
    conditions: dict[str, None] = {}
    for stage in stages:
        if stage.kind != "evaluate" or not stage.name.startswith("test"):
            continue
        results = records[stage.name].metrics
        model = work / stage.argv[0]
        description = read_description(model)
        shape = f"{description.model.encoder_layers}+{description.model.decoder_layers}"
        test = next(
            value for flag, value in zip(stage.argv, stage.argv[1:], strict=False) if flag in ("--tsv", "--source-file")
        )
        megabytes = (model / "model.safetensors").stat().st_size / 1e6
        rows.append(
            (
                " + ".join([model.name, *(Path(other).name for other in results.get("ensemble", []))]),
                results["direction"],
                Path(test).name,
                shape,
                f"{description.vocabulary_size:,}",
                f"{results['dtype']}{', shortlist' if results['shortlist'] else ''}",
                str(results["beam_size"]),
                f"{score(results, 'BLEU'):.2f}",
                f"{score(results, 'chrF2'):.2f}",
                f"{results['sentences_per_second']:,.0f}",
                f"{megabytes:.1f}",
            )
        )
        for entry in results["scores"]:
            if entry["name"] in ("BLEU", "chrF2"):
                signatures[f"{entry['name']}: {entry['signature']}"] = None
        conditions[
            f"length penalty {results['length_penalty']:g}, {results['device']}, {results['threads']} threads, "
            f"torch {results['torch']}; sentences/s with tokenisation, measured once"
        ] = None
    sizes = ("layers", "pieces", "precision", "beam")
    header = ("model", "direction", "test set", *sizes, "BLEU", "chrF2", "sentences/s", "MB")
    note = "MB: the float32 weights on the disk."
    return table("Models", header, rows, [*signatures, *conditions, note])


def teachers_table(stages: Sequence[Stage], records: Mapping[str, Record], runner: Runner) -> str:
    """Return a table of all teachers: their BLEU on the validation set, and the names of the published ones."""
    rows = []
    choices = [stage for stage in stages if stage.kind == "choose" and len(stage.candidates) > 1]
    for stage in choices:
        for candidate in stage.candidates if stage.rank == 1 else ():
            published = [
                Path(other.output).name
                for other in choices
                if other.candidates == stage.candidates and records[other.name].metrics["model"] == candidate.model
            ]
            bleu = runner.bleu(candidate.scores)
            rows.append((candidate.model, "not trained" if bleu is None else f"{bleu:.2f}", ", ".join(published)))
    note = "The build publishes the teacher with the highest BLEU on the validation set, whichever round it is from."
    return table("Teachers", ("model", "BLEU on the validation set", "published as"), rows, [note])


def stages_table(stages: Sequence[Stage], records: Mapping[str, Record]) -> str:
    """Return a table of all stages with their minutes. `records` are the records of the stages by name."""
    rows = [
        (stage.name, stage.kind, f"{record.seconds / 60:.1f}", record.state)
        if (record := records.get(stage.name))
        else (stage.name, stage.kind, "", "not run")
        for stage in stages
    ]
    note = f"Sum of all stages: {sum(record.seconds for record in records.values()) / 60:.1f} minutes."
    return table("Stages", ("stage", "verb", "minutes", "state"), rows, [note])


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], notes: Iterable[str]) -> str:
    """Return a section in Markdown: a table, and `notes` below it."""
    lines = [f"| {' | '.join(cells)} |" for cells in (header, ["---"] * len(header), *rows)]
    return "\n".join([f"## {title}\n", *lines, "", *(f"- {note}" for note in notes), ""])
