"""Windtunnel from Python: the command line's answers as objects. Nothing is computed here. Each function runs the program
`windtunnel` and reads the JSON document that it prints.

    import windtunnel
    plan = windtunnel.plan("dbrx-3072-h100", gpus=1024)
    plan.days.p50, plan.layout_words
    plan                                # in a notebook: the report
    plan.frames()["Fastest layouts"]    # a pandas DataFrame of a table of the report
"""
from .program import WindtunnelError, program, run
from .questions import ask, explain, plan, simulate
from .results import Decision, Explanation, Interval, Plan, Result, Simulation

__all__ = ["Decision", "Explanation", "Interval", "Plan", "Result", "Simulation", "WindtunnelError", "ask", "explain", "plan",
           "program", "run", "simulate"]
