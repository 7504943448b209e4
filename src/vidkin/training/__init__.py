"""Room training: recipes, the one loop that follows them, and what the result is worth."""

from vidkin.training.batch import Batch, Draw, DrawnItems
from vidkin.training.comparison import ComparisonPlan, read_runs, run_comparison
from vidkin.training.comparison_data import COMPARISON_SETS, ComparisonSet, comparison_set, open_set
from vidkin.training.comparison_methods import METHODS, Method, method_named
from vidkin.training.comparison_report import Row, Summary, Verdict, as_page, summarise
from vidkin.training.comparison_runs import Run, Schedule
from vidkin.training.evaluation import Evaluation, embed_set, evaluate, measure_embeddings
from vidkin.training.inputs import Inputs, prepare_inputs
from vidkin.training.loop import train
from vidkin.training.objectives import Objective, WeightedObjective, available_objectives, build_objective
from vidkin.training.quadlet_picture import draw_quadlets
from vidkin.training.recipe import (
    AUGMENTATIONS,
    DataRecipe,
    Measure,
    ObjectiveRecipe,
    Recipe,
    ScheduleRecipe,
    ValidationRecipe,
    available_recipes,
    load_recipe,
    show_recipe,
)
from vidkin.training.report import OnProgress, TrainingInterrupted, TrainingProgress, TrainingReport
from vidkin.training.run import open_data
from vidkin.training.shot_clips import ShotBatch, ShotClips, annotated_shots
from vidkin.training.shot_objectives import SHOT_LOSSES, ShotLoss, ShotObjective
from vidkin.training.shot_training import ShotRecipe, ShotTraining, train_on_shots

__all__ = [
    "AUGMENTATIONS",
    "COMPARISON_SETS",
    "METHODS",
    "SHOT_LOSSES",
    "Batch",
    "ComparisonPlan",
    "ComparisonSet",
    "DataRecipe",
    "Draw",
    "DrawnItems",
    "Evaluation",
    "Inputs",
    "Measure",
    "Method",
    "Objective",
    "ObjectiveRecipe",
    "OnProgress",
    "Recipe",
    "Row",
    "Run",
    "Schedule",
    "ScheduleRecipe",
    "ShotBatch",
    "ShotClips",
    "ShotLoss",
    "ShotObjective",
    "ShotRecipe",
    "ShotTraining",
    "Summary",
    "TrainingInterrupted",
    "TrainingProgress",
    "TrainingReport",
    "ValidationRecipe",
    "Verdict",
    "WeightedObjective",
    "annotated_shots",
    "as_page",
    "available_objectives",
    "available_recipes",
    "build_objective",
    "comparison_set",
    "draw_quadlets",
    "embed_set",
    "evaluate",
    "load_recipe",
    "measure_embeddings",
    "method_named",
    "open_data",
    "open_set",
    "prepare_inputs",
    "read_runs",
    "run_comparison",
    "show_recipe",
    "summarise",
    "train",
    "train_on_shots",
]
