"""Recipes, training runs, and the evaluation of models."""

from vidkin.models.engine import Objective
from vidkin.training.batch import Batch, Draw, DrawnItems
from vidkin.training.classifier import (
    ClassifiedFile,
    ClassifierEvaluation,
    DescribedParts,
    Neighbor,
    RetrievalFigures,
    TrainingItems,
    classify,
    describe_splits,
    evaluate_classifier,
    nearest,
)
from vidkin.training.division import open_data
from vidkin.training.embedding_measures import measure_embeddings
from vidkin.training.evaluation import Evaluation, embed_set, evaluate, open_evaluation_set
from vidkin.training.inputs import Inputs, prepare_inputs
from vidkin.training.objectives import LossEntry, WeightedObjective, available_objectives, build_objective
from vidkin.training.preview import FirstBatch, LabelCount, RecipePreview, preview_recipe
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
from vidkin.training.run import (
    OnTrainingProgress,
    TrainingInterrupted,
    TrainingProgress,
    TrainingReport,
    train,
)

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
