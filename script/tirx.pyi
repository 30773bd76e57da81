"""Another name of `weft.script.tir`. Written from the declarations; do not edit."""

from weft.script.tir import *
