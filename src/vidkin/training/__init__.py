"""Room training: recipes, the one loop that follows them, and what the result is worth."""

from vidkin.training.batch import Batch, Draw, DrawnItems
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
    "SHOT_LOSSES",
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
    "ShotBatch",
    "ShotClips",
    "ShotLoss",
    "ShotObjective",
    "ShotRecipe",
    "ShotTraining",
    "TrainingInterrupted",
    "TrainingProgress",
    "TrainingReport",
    "ValidationRecipe",
    "WeightedObjective",
    "annotated_shots",
    "available_objectives",
    "available_recipes",
    "build_objective",
    "draw_quadlets",
    "embed_set",
    "evaluate",
    "load_recipe",
    "measure_embeddings",
    "open_data",
    "prepare_inputs",
    "show_recipe",
    "train",
    "train_on_shots",
]
