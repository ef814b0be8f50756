"""Report of a build, in Markdown and HTML: quality, speed and size of each model, and duration of each stage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from mt.build.runner import Record, Runner, score
from mt.build.stage import Stage
from mt.checkpoint import read_description
from mt.files import atomic_file

STYLE = """body { font: 15px/1.5 system-ui, sans-serif; max-width: 75em; margin: 2em auto; padding: 0 1em }
table { border-collapse: collapse; margin: 1em 0 } th, td { padding: .3em .8em; border-bottom: 1px solid #ccc }
th { text-align: left } td.number { text-align: right; font-variant-numeric: tabular-nums }"""


@dataclass(frozen=True)
class ReportTable:
    """A table of the report. `notes` are printed below it."""

    title: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    notes: Sequence[str] = ()


def write_report(name: str, stages: Sequence[Stage], seconds: Mapping[str, float], runner: Runner) -> Path:
    """Write `report.md` and `report.html`, and return the path of `report.md`.

    Args:
        name: Title of the report.
        stages: All stages of the build.
        seconds: Estimated seconds of each stage.
        runner: The runner that ran the stages.
    """
    records = {stage.name: record for stage in stages if (record := runner.record(stage.name))}
    tables = [
        models_table(stages, records, runner.work),
        teachers_table(stages, records, runner),
        stages_table(stages, records, seconds),
    ]
    for suffix, text in (("md", markdown(name, tables)), ("html", html(name, tables))):
        with atomic_file(runner.work / f"report.{suffix}") as file:
            file.write_text(text, encoding="utf-8")
    return runner.work / "report.md"


def models_table(stages: Sequence[Stage], records: Mapping[str, Record], work: Path) -> ReportTable:
    """Return the table of the published models: scores on each test set, speed and size.

    `records` are the records of the stages by name, and `work` is the folder of the build.
    """
    rows: list[tuple[str, ...]] = []
    signatures: dict[str, None] = {}
    conditions: dict[str, None] = {}
    for stage in stages:
        if stage.kind != "evaluate" or not stage.name.startswith("test"):
            continue
        figures = records[stage.name].figures
        model = work / stage.argv[0]
        description = read_description(model)
        shape = f"{description.model.encoder_layers}+{description.model.decoder_layers}"
        test = next(
            value for flag, value in zip(stage.argv, stage.argv[1:], strict=False) if flag in ("--tsv", "--source")
        )
        megabytes = (model / "model.safetensors").stat().st_size / 1e6
        rows.append(
            (
                " + ".join([model.name, *(Path(other).name for other in figures.get("ensemble", []))]),
                figures["direction"],
                Path(test).name,
                shape,
                f"{description.vocabulary_size:,}",
                f"{figures['dtype']}{', shortlist' if figures['shortlist'] else ''}",
                str(figures["beam_size"]),
                f"{score(figures, 'BLEU'):.2f}",
                f"{score(figures, 'chrF2'):.2f}",
                f"{figures['sentences_per_second']:,.0f}",
                f"{megabytes:.1f}",
            )
        )
        for entry in figures["scores"]:
            if entry["name"] in ("BLEU", "chrF2"):
                signatures[f"{entry['name']}: {entry['signature']}"] = None
        conditions[
            f"length penalty {figures['length_penalty']:g}, {figures['device']}, {figures['threads']} threads, "
            f"torch {figures['torch']}; sentences/s with tokenisation, measured once"
        ] = None
    sizes = ("layers", "pieces", "precision", "beam")
    header = ("model", "direction", "test set", *sizes, "BLEU", "chrF2", "sentences/s", "MB")
    note = "MB: the float32 weights on the disk."
    return ReportTable("Models", header, rows, [*signatures, *conditions, note])


def teachers_table(stages: Sequence[Stage], records: Mapping[str, Record], runner: Runner) -> ReportTable:
    """Return a table of all teachers: their BLEU on the validation set, and the names of the published ones."""
    rows = []
    choices = [stage for stage in stages if stage.kind == "choose" and len(stage.candidates) > 1]
    for stage in choices:
        for candidate in stage.candidates if stage.rank == 1 else ():
            published = [
                Path(other.output).name
                for other in choices
                if other.candidates == stage.candidates and records[other.name].figures["model"] == candidate.model
            ]
            bleu = runner.bleu(candidate.scores)
            rows.append((candidate.model, "not trained" if bleu is None else f"{bleu:.2f}", ", ".join(published)))
    note = "The build publishes the teacher with the highest BLEU on the validation set, whichever round it is from."
    return ReportTable("Teachers", ("model", "BLEU on the validation set", "published as"), rows, [note])


def stages_table(stages: Sequence[Stage], records: Mapping[str, Record], seconds: Mapping[str, float]) -> ReportTable:
    """Return a table of all stages with estimated and actual minutes.

    `records` are the records of the stages, and `seconds` the estimated seconds, by the name of the stage.
    """
    rows = [
        (
            stage.name,
            stage.kind,
            f"{seconds.get(stage.name, 0) / 60:.1f}",
            f"{records[stage.name].seconds / 60:.1f}" if stage.name in records else "",
            records[stage.name].state if stage.name in records else "not run",
            stage.gain,
        )
        for stage in stages
    ]
    estimated = sum(seconds.get(stage.name, 0) for stage in stages) / 60
    actual = sum(record.seconds for record in records.values()) / 60
    note = f"Sum of all stages: {estimated:.1f} minutes estimated, {actual:.1f} minutes actual."
    return ReportTable(
        "Stages", ("stage", "verb", "estimated minutes", "minutes", "state", "expected gain"), rows, [note]
    )


def markdown(name: str, tables: Sequence[ReportTable]) -> str:
    parts = [f"# Build {name}"]
    for table in tables:
        lines = [f"| {' | '.join(cells)} |" for cells in (table.header, ["---"] * len(table.header), *table.rows)]
        parts += [f"## {table.title}", "\n".join(lines), "\n".join(f"- {note}" for note in table.notes)]
    return "\n\n".join(parts) + "\n"


def html(name: str, tables: Sequence[ReportTable]) -> str:
    """Return the tables as one HTML page without external resources."""
    parts = [f"<h1>Build {escape(name)}</h1>"]
    for table in tables:
        head = "".join(f"<th>{escape(cell)}</th>" for cell in table.header)
        rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>\n" for row in table.rows)
        notes = "".join(f"<li>{escape(note)}</li>" for note in table.notes)
        parts.append(f"<h2>{escape(table.title)}</h2><table><tr>{head}</tr>\n{rows}</table><ul>{notes}</ul>")
    head = f"<meta charset='utf-8'><title>Build {escape(name)}</title><style>{STYLE}</style>"
    return f"<!doctype html><html lang='en'><head>{head}</head><body>{''.join(parts)}</body></html>\n"


def _cell(text: str) -> str:
    number = text.replace(",", "").replace(".", "", 1).isdigit()
    return f"<td class='number'>{escape(text)}</td>" if number else f"<td>{escape(text)}</td>"
