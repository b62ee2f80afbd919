"""What the instrument of the page Generate accepts from a browser, for any input whatever, and what it is sent."""

import json
from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from pages.ui.components.writing import ACTS, LARGEST, LIMITS, Event, Extent, checked_controls, checked_event
from pages.ui.models import passages
from pages.ui.models.branches import LOGITS
from pages.ui.models.writer import Looked, Writer
from pages.ui.shell.choices import PACES, Visitor
from pages.ui.views import generate
from tests.test_attention_component import ANYTHING, STRANGE
from tests.tiny_models import save_tiny
from tests.writers import FOREVER, GREEDY, HERE, SAMPLING, all_ids, begin, ids, save_models, written
from transformer import Recording, Sampling, Tokenizer
