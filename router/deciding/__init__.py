"""Projections, three-valued rules and the choice of a decision."""
