"""Recipes, training runs, and the evaluation of models."""

from vidkin.models.engine import Objective
from vidkin.training.classifier.classify import ClassifiedFile, Neighbor, classify
from vidkin.training.classifier.evaluation import (
    ClassifierEvaluation,
    DescribedParts,
    RetrievalFigures,
    describe_splits,
    evaluate_classifier,
)
from vidkin.training.classifier.neighbors import TrainingItems, nearest
from vidkin.training.data.batch import Batch, Draw, DrawnItems
from vidkin.training.data.inputs import Inputs, prepare_inputs
from vidkin.training.embedding_measures import measure_embeddings
from vidkin.training.evaluation import Evaluation, embed_set, evaluate
from vidkin.training.evaluation_set import open_evaluation_set
from vidkin.training.loss_table import LossEntry, available_objectives
from vidkin.training.objectives import WeightedObjective, build_objective
from vidkin.training.recipe import (
    AUGMENTATIONS,
    DataRecipe,
    Measure,
    ObjectiveRecipe,
    Recipe,
    ScheduleRecipe,
    ValidationRecipe,
)
from vidkin.training.recipe_file import available_recipes, load_recipe, show_recipe
from vidkin.training.report import OnTrainingProgress, TrainingInterrupted, TrainingProgress, TrainingReport
from vidkin.training.run.division import open_data
from vidkin.training.run.preview import FirstBatch, LabelCount, RecipePreview, preview_recipe
from vidkin.training.run.train import train

__all__ = [
    "AUGMENTATIONS",
    "Batch",
    "ClassifiedFile",
    "ClassifierEvaluation",
    "DataRecipe",
    "DescribedParts",
    "Draw",
    "DrawnItems",
    "Evaluation",
    "FirstBatch",
    "Inputs",
    "LabelCount",
    "LossEntry",
    "Measure",
    "Neighbor",
    "Objective",
    "ObjectiveRecipe",
    "OnTrainingProgress",
    "Recipe",
    "RecipePreview",
    "RetrievalFigures",
    "ScheduleRecipe",
    "TrainingInterrupted",
    "TrainingItems",
    "TrainingProgress",
    "TrainingReport",
    "ValidationRecipe",
    "WeightedObjective",
    "available_objectives",
    "available_recipes",
    "build_objective",
    "classify",
    "describe_splits",
    "embed_set",
    "evaluate",
    "evaluate_classifier",
    "load_recipe",
    "measure_embeddings",
    "nearest",
    "open_data",
    "open_evaluation_set",
    "prepare_inputs",
    "preview_recipe",
    "show_recipe",
    "train",
]
