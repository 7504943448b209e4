"""Recipes, training runs, and the evaluation of models."""

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
from vidkin.training.clip_footage import Window
from vidkin.training.clip_views import ClipFeatures
from vidkin.training.division import open_data
from vidkin.training.draws import index_stream
from vidkin.training.embedding_measures import measure_embeddings, measure_one
from vidkin.training.engine import Objective, take_steps
from vidkin.training.evaluation import Evaluation, embed_set, evaluate, open_evaluation_set
from vidkin.training.image_set import FrameNeighbors, ImageSet
from vidkin.training.inputs import Inputs, prepare_inputs
from vidkin.training.labeled import LabeledData
from vidkin.training.objectives import (
    LossEntry,
    WeightedObjective,
    available_objectives,
    build_objective,
    find_loss,
    settle_parameters,
)
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
from vidkin.training.recipe_file import (
    available_recipes,
    describe_recipe,
    has_reduced_form,
    load_recipe,
    recipe_tables,
    show_recipe,
)
from vidkin.training.run import (
    OnTrainingProgress,
    RunLog,
    TrainingInterrupted,
    TrainingProgress,
    TrainingReport,
    train,
)
from vidkin.training.schedules import Decay, OneCycle

__all__ = [
    "AUGMENTATIONS",
    "Batch",
    "ClassifiedFile",
    "ClassifierEvaluation",
    "ClipFeatures",
    "DataRecipe",
    "Decay",
    "DescribedParts",
    "Draw",
    "DrawnItems",
    "Evaluation",
    "FirstBatch",
    "FrameNeighbors",
    "ImageSet",
    "Inputs",
    "LabelCount",
    "LabeledData",
    "LossEntry",
    "Measure",
    "Neighbor",
    "Objective",
    "ObjectiveRecipe",
    "OnTrainingProgress",
    "OneCycle",
    "Recipe",
    "RecipePreview",
    "RetrievalFigures",
    "RunLog",
    "ScheduleRecipe",
    "TrainingInterrupted",
    "TrainingItems",
    "TrainingProgress",
    "TrainingReport",
    "ValidationRecipe",
    "WeightedObjective",
    "Window",
    "available_objectives",
    "available_recipes",
    "build_objective",
    "classify",
    "describe_recipe",
    "describe_splits",
    "embed_set",
    "evaluate",
    "evaluate_classifier",
    "find_loss",
    "has_reduced_form",
    "index_stream",
    "load_recipe",
    "measure_embeddings",
    "measure_one",
    "nearest",
    "open_data",
    "open_evaluation_set",
    "prepare_inputs",
    "preview_recipe",
    "recipe_tables",
    "settle_parameters",
    "show_recipe",
    "take_steps",
    "train",
]
