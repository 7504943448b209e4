"""Room training: recipes, the one loop that follows them, and what the result is worth."""

from vidkin.training.data.batch import Batch, Draw, DrawnItems
from vidkin.training.data.inputs import Inputs, prepare_inputs
from vidkin.training.evaluation import Evaluation, embed_set, evaluate, measure_embeddings
from vidkin.training.evaluation_set import open_evaluation_set
from vidkin.training.objectives import Objective, WeightedObjective, available_objectives, build_objective
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
from vidkin.training.run.state import open_data
from vidkin.training.run.train import train

__all__ = [
    "AUGMENTATIONS",
    "Batch",
    "DataRecipe",
    "Draw",
    "DrawnItems",
    "Evaluation",
    "Inputs",
    "Measure",
    "Objective",
    "ObjectiveRecipe",
    "OnProgress",
    "Recipe",
    "ScheduleRecipe",
    "TrainingInterrupted",
    "TrainingProgress",
    "TrainingReport",
    "ValidationRecipe",
    "WeightedObjective",
    "available_objectives",
    "available_recipes",
    "build_objective",
    "embed_set",
    "evaluate",
    "load_recipe",
    "measure_embeddings",
    "open_data",
    "open_evaluation_set",
    "prepare_inputs",
    "show_recipe",
    "train",
]
