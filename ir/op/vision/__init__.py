"""Operators of images, boxes and regions of interest."""
