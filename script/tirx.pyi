"""Another name of `weft.script.tir`. Written by docs/stubs.py; do not edit."""

from weft.script.tir import *
