"""The primitives of schedules, by theme; `weft.transform.schedule.schedule` puts them together."""
