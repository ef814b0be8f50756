"""Plan of a build: the list of stages for a recipe with `[build]`, in execution order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mt.build.config import BuildConfig, StudentConfig, all_directions
from mt.build.corpora import first_stages, test_sets, validation_options
from mt.build.recipes import SyntheticCorpus, Values, pair_of, student_recipe, teacher_recipe, training_texts
from mt.build.stage import DATA, ORIGINAL, ORIGINAL_MODEL, TEXT, Candidate, Gate, Stage, folder_of
from mt.config import Recipe
from mt.languages import Direction

N_BEST = 5  # translations of each training sentence; the translation with the highest sentence BLEU is used


@dataclass(frozen=True)
class ModelDirections:
    """The directions that one model translates. `label` identifies the model in the names of stages."""

    label: str
    directions: tuple[Direction, ...]


@dataclass(frozen=True)
class FileToTranslate:
    """A file to translate.

    `stage` is the stage that writes the file, or "" for a corpus. `reference` is the path of reference translations, or
    "". `weight` is the weight of its translations.
    """

    path: str
    stage: str = ""
    reference: str = ""
    weight: float = 1.0


Ensemble = tuple[Candidate, ...]
"""Models that translate together: one model, or several with averaged probabilities."""


@dataclass(frozen=True)
class Machine:
    """The device that every stage uses, and the number of processes of every training run."""

    device: str = "cpu"
    processes: int = 1


def make_plan(recipe: Recipe, build: BuildConfig, machine: Machine) -> list[Stage]:
    """Return the stages of a build in execution order."""
    planner = Planner(recipe, build, machine)
    planner.plan()
    return [*first_stages(recipe, build), *planner.stages]


class Planner:
    """Planner of all stages after `first_stages`. The method `plan` appends them to the attribute `stages`."""

    def __init__(self, recipe: Recipe, build: BuildConfig, machine: Machine) -> None:
        self.recipe, self.build, self.machine = recipe, build, machine
        self.stages: list[Stage] = []
        self.directions = all_directions(recipe, build)
        self.requested_models = self._groups(tuple(recipe.data.directions))
        self.groups = self._groups(self.directions)
        self._gate: Gate | None = None

    def _groups(self, directions: tuple[Direction, ...]) -> list[ModelDirections]:
        if self.build.single_model:
            return [ModelDirections("all", self.directions)]
        return [ModelDirections(str(direction), (direction,)) for direction in directions]

    def plan(self) -> None:
        rounds = self.build.rounds if self.build.is_synthetic else 0
        models = {group.label: self._teachers(0, group) for group in self.groups}
        candidates = {group.label: list(models[group.label]) for group in self.requested_models}
        if self.recipe.tuning:
            for group in self.requested_models:
                candidates[group.label].append(self._candidate(ORIGINAL, ORIGINAL_MODEL, group))
        scores = [self._scores(models)]
        back_translations: list[SyntheticCorpus] = []
        for number in range(1, rounds + 1):
            self._gate = Gate(scores[-2], scores[-1]) if number > 1 else None
            corpora = self._synthesize(number, models)
            back_translations = back_translations or [corpus for corpus in corpora if corpus.monolingual]
            groups = self.requested_models if number == rounds else self.groups
            models = {group.label: self._teachers(number, group, corpora) for group in groups}
            scores.append(self._scores(models))
            for group in self.requested_models:
                candidates[group.label] += models[group.label]
        self._gate = None
        for group in self.requested_models:
            self._finish(group, candidates[group.label], back_translations)

    def _scores(self, models: Mapping[str, Sequence[Candidate]]) -> tuple[str, ...]:
        """Return the names of the stages that evaluate the requested ones of `models` on the validation set."""
        candidates = [candidate for group in self.requested_models for candidate in models[group.label]]
        return tuple(name for candidate in candidates for name in candidate.scores)

    def _train(self, name: str, values: Values, inputs: Sequence[str]) -> Stage:
        """Append and return the stage that trains a model with the recipe `values`, after the stages `inputs`."""
        folder = folder_of(name)
        options = ("--device", self.machine.device, "--processes", str(self.machine.processes))
        argv = (f"{folder}/stage.toml", "--run", folder, "--resume", "--prepared", "prepared", *options)
        return self._add(Stage(name, "train", argv, f"{folder}/model", inputs=(TEXT, *inputs), recipe=values))

    def _add(self, stage: Stage) -> Stage:
        self.stages.append(replace(stage, gate=self._gate))
        return stage

    def _teachers(
        self, round_number: int, group: ModelDirections, corpora: Sequence[SyntheticCorpus] = ()
    ) -> list[Candidate]:
        """Append the stages that train the teachers of `group` and evaluate them on the validation set.

        One teacher is trained for each seed. In round 0, the teachers are trained on parallel text. In later rounds,
        they are also trained on those of `corpora` that have the languages of the group. Return the teachers.
        """
        trained = []
        used = [corpus for corpus in corpora if {corpus.direction, corpus.direction.reversed} & {*group.directions}]
        for number in range(self.build.seeds):
            values = teacher_recipe(self.recipe, self.build, group.directions, used)
            values["seed"] = self.recipe.seed + number
            name = f"{f'round{round_number}' if round_number else 'base'}-{group.label}-{number + 1}"
            stage = self._train(name, values, [corpus.stage for corpus in used])
            trained.append(self._candidate(name, stage.output, group))
        return trained

    def _candidate(self, stage: str, model: str, group: ModelDirections) -> Candidate:
        """Append the stages that evaluate `model` on the validation set. The model is the output of `stage`."""
        directions = [direction for direction in group.directions if direction in self.recipe.data.directions]
        return Candidate(model, tuple(self._score(stage, model, direction) for direction in directions))

    def _score(self, trained: str, model: str, direction: Direction) -> str:
        """Append the stage that evaluates a model on the validation set, and return the name of the stage.

        `trained` is the stage that trained the model, and `model` is the path of the model.
        """
        options = validation_options(pair_of(direction, self.directions))
        argv = (*options, *language_options(direction), *self._device)
        return self._evaluate(f"score-{trained}-{direction}", model, argv, (TEXT, trained))

    def _evaluate(
        self, name: str, model: str, options: tuple[str, ...], inputs: tuple[str, ...], files: tuple[str, ...] = ()
    ) -> str:
        output = f"{folder_of(name)}/output.json"
        self._add(Stage(name, "evaluate", (model, *options), output, inputs, files))
        return name

    @property
    def _device(self) -> tuple[str, str]:
        return "--device", self.machine.device

    def _synthesize(self, number: int, models: dict[str, list[Candidate]]) -> list[SyntheticCorpus]:
        """Append the stages of a round that translate text with `models`, and return the translated corpora.

        All models of a direction translate the training text. Only the first one translates the monolingual text.
        """
        corpora = []
        by_direction = {direction: models[group.label] for group in self.groups for direction in group.directions}
        for direction, teachers in by_direction.items():
            translators = [(teacher,) for teacher in teachers]
            backward = by_direction[direction.reversed][0].model if self.build.filter else ""
            if self.build.diversify:
                corpora += self._parallel(f"{number}-{direction}", direction, translators, backward)
            for name, text in self._monolingual(f"{number}-{direction}", direction):
                corpora.append(self._corpus(name, text, direction, translators[:1], backward))
        return corpora

    def _monolingual(self, name: str, direction: Direction) -> list[tuple[str, FileToTranslate]]:
        """Return the monolingual text in the source language of `direction`, each with a name."""
        return [
            (f"{name}-monolingual{index}", FileToTranslate(DATA + text.path, weight=text.weight))
            for index, text in enumerate(self.build.monolingual, 1)
            if text.columns[0] == direction.source
        ]

    def _parallel(
        self, name: str, direction: Direction, translators: Sequence[Ensemble], backward: str = ""
    ) -> list[SyntheticCorpus]:
        """Append the stages that translate the training text of `direction`, and return the translated corpora.

        Each translator writes N_BEST translations of each source. The corpus gets the one with the highest sentence
        BLEU.
        """
        pair = pair_of(direction, self.directions)
        texts = training_texts(self.recipe, pair, "sample" if self.build.translated_pairs else "train")
        corpora = []
        for number, (path, weight) in enumerate(texts, 1):
            source, reference = (f"{path}.{language}" for language in direction.languages)
            file = FileToTranslate(source, TEXT, reference, weight)
            suffix = f"-corpus{number}" if len(texts) > 1 else ""
            corpora.append(self._corpus(f"{name}{suffix}", file, direction, translators, backward))
        return corpora

    def _corpus(
        self,
        name: str,
        text: FileToTranslate,
        direction: Direction,
        translators: Sequence[Ensemble],
        backward: str = "",
    ) -> SyntheticCorpus:
        """Append the stages that translate `text` with each translator, and return the corpus of all translations.

        The model `backward`, if one is given, scores the translations, and those with the lowest scores are dropped.
        """
        files = (text.path.removeprefix(DATA),) if text.path.startswith(DATA) else ()
        before = (text.stage,) if text.stage else ()
        n_best = ("--n-best", str(N_BEST), "--beam-size", str(max(N_BEST, self.recipe.decoding.beam_size)))
        languages = language_options(direction)
        outputs, translations = [], []
        for index, (model, *others) in enumerate(translators, 1):
            stage = f"translate-{name}" + (f"-{index}" if len(translators) > 1 else "")
            output = f"{folder_of(stage)}/output.jsonl"
            options = ("--sentences", "--json", "--output", output, *self._device, *(n_best if text.reference else ()))
            argv = ("--model", model.model, text.path, *languages, *options, *ensemble_option(others))
            inputs = (*before, *(stage_of(member.model) for member in (model, *others)))
            self._add(Stage(stage, "translate", argv, output, inputs, files))
            outputs.append(output)
            translations.append(stage)
        stage = f"corpus-{name}"
        corpus = f"{folder_of(stage)}/corpus"
        argv = (*outputs, *languages, "--out", corpus)
        inputs = (*before, *translations)
        if text.reference:
            argv += ("--reference-file", text.reference)
        if backward:
            argv += ("--backward", backward, "--drop", str(self.build.filter), *self._device)
            inputs += (stage_of(backward),)
        self._add(Stage(stage, "distil", argv, f"{corpus}.{direction.target}", inputs))
        return SyntheticCorpus(stage, corpus, direction, text.weight, monolingual=not text.reference)

    def _finish(
        self, group: ModelDirections, candidates: list[Candidate], back_translations: Sequence[SyntheticCorpus]
    ) -> None:
        """Append the stages that choose the teacher of `group`, train the students, and evaluate all on the test sets.

        `candidates` are the teachers of all rounds. `back_translations` are those of the monolingual text.
        """
        teacher, *others = [
            self._publish(f"{group.label}-teacher{rank if rank > 1 else ''}", candidates, (), rank)
            for rank in range(1, self.build.ensemble + 1)
        ]
        self._finish_model(group, teacher)
        if others:
            self._finish_model(group, teacher, others)
        if not self.build.student:
            return
        ensemble = tuple(Candidate(stage.output) for stage in (teacher, *others))
        corpora = self._student_text(group, ensemble, back_translations)
        before = teacher.output
        values = teacher_recipe(self.recipe, self.build, group.directions)
        for number, student in enumerate(self.build.student, 1):
            name = f"student{number}-{group.label}"
            shrunk = self._shrink(f"shrink-{name}", student, before)
            recipe = student_recipe(values, student, shrunk.output, corpora, bool(self.build.translated_pairs))
            stage = self._train(name, recipe, (shrunk.name, *(corpus.stage for corpus in corpora)))
            published = self._publish(f"{group.label}-student{number}", [Candidate(stage.output)], (name,))
            self._finish_model(group, published)
            before = stage.output

    def _shrink(self, name: str, student: StudentConfig, model: str) -> Stage:
        sizes = ("encoder_layers", "decoder_layers", "vocabulary_size")
        given = [(size, value) for size in sizes if (value := getattr(student, size)) is not None]
        options = [text for size, value in given for text in (f"--{size.replace('_', '-')}", str(value))]
        output = f"{folder_of(name)}/model"
        return self._add(Stage(name, "shrink", (model, output, *options), output, (stage_of(model),)))

    def _student_text(
        self, group: ModelDirections, teacher: Ensemble, back_translations: Sequence[SyntheticCorpus]
    ) -> list[SyntheticCorpus]:
        """Append the stages that translate text with `teacher`, and return the corpora for the students.

        The teacher translates the training text, the monolingual text, and the sources of `back_translations`.
        """
        corpora = []
        for direction in group.directions:
            corpora += self._parallel(f"student-{direction}", direction, [teacher])
            for name, text in self._monolingual(f"student-{direction}", direction):
                corpora.append(self._corpus(name, text, direction, [teacher]))
            reversed_corpora = [corpus for corpus in back_translations if corpus.direction == direction.reversed]
            for index, corpus in enumerate(reversed_corpora, 1):
                path = f"{corpus.path}.{direction.source}"
                source = FileToTranslate(path, corpus.stage, weight=corpus.weight)
                corpora.append(self._corpus(f"student-{direction}-back{index}", source, direction, [teacher]))
        return corpora

    def _publish(self, name: str, candidates: list[Candidate], inputs: tuple[str, ...], rank: int = 1) -> Stage:
        """Append and return the stage that copies the best of `candidates`, or that of `rank`, to `models/name`.

        This stage runs after the stages that train the candidates, and after the stages `inputs`.
        """
        stages = tuple(stage_of(candidate.model) for candidate in candidates)
        output = f"models/{name}"
        stage = Stage(f"model-{name}", "choose", (output,), output, (*stages, *inputs))
        return self._add(replace(stage, candidates=tuple(candidates), rank=rank))

    def _finish_model(self, group: ModelDirections, model: Stage, others: Sequence[Stage] = ()) -> None:
        """Append the stages that evaluate a published model on each test set, in the default precision and in float32.

        `model` is the stage that copies the model. If there are `others`, their ensemble with the model is evaluated.
        """
        label = f"{group.label}-ensemble" if others else model.name.removeprefix("model-")
        ensemble = ensemble_option([Candidate(stage.output) for stage in others])
        inputs = (TEXT, model.name, *(stage.name for stage in others))
        variants: dict[str, tuple[str, ...]] = {"": ()}
        if not others:  # an ensemble always translates in float32
            variants["-float32"] = ("--dtype", "float32")
        for direction in group.directions:
            if direction in self.recipe.data.directions:
                for test, options, files in test_sets(self.recipe, direction, pair_of(direction, self.directions)):
                    for variant, precision in variants.items():
                        name = f"test{test}-{label}-{direction}{variant}"
                        argv = (*options, *language_options(direction), *self._device, *precision, *ensemble)
                        self._evaluate(name, model.output, argv, inputs, files)


def language_options(direction: Direction) -> tuple[str, ...]:
    return "--source", direction.source, "--target", direction.target


def ensemble_option(others: Sequence[Candidate]) -> tuple[str, ...]:
    """Return the option with which a model translates together with `others`. Without `others`, return ()."""
    return ("--ensemble", *(other.model for other in others)) if others else ()


def stage_of(model: str) -> str:
    """Return the name of the stage that writes the model directory `model`."""
    kind, name, *_ = model.split("/")
    return name if kind == "stages" else f"model-{name}"
