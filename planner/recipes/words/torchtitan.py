"""The words of torchtitan 0.2.2, as configs/words/torchtitan.json: names and choices from the fields of JobConfig, verdicts
from the table below. Prints the file. Nothing is imported.

torchtitan.py FOLDER: holds torchtitan/config/job_config.py of the wheel:
    python3 -m pip download --no-deps torchtitan==0.2.2 && python3 -m zipfile -e torchtitan-0.2.2*.whl FOLDER
"""
import ast
import json
import sys
from pathlib import Path

VERSION = "torchtitan 0.2.2"
# Whole sections, or single keys. The longest name that a key begins with counts; keys without one are modelled.
VERDICTS = {
    "ignored": {
        "": "job.config_file job.dump_folder job.print_config job.save_config_file profiling metrics memory_estimation "
            "model.hf_assets_path model.tokenizer_path model.print_after_conversion training.gc_freq training.gc_debug comm.init_timeout_seconds "
            "comm.trace_buf_size comm.save_traces_folder comm.save_traces_file_prefix checkpoint.folder checkpoint.last_save_model_only "
            "checkpoint.last_save_in_hf checkpoint.export_dtype checkpoint.enable_ft_dataloader_checkpoints checkpoint.create_seed_checkpoint "
            "activation_checkpoint.visualize_memory_budget_pareto activation_checkpoint.preserve_rng_state "
            "activation_checkpoint.determinism_check activation_checkpoint.debug",
        "data are taken as ready": "training.dataloader validation.dataloader",
    },
    "learning": {
        "": "training.dataset training.dataset_path lr_scheduler.total_steps lr_scheduler.decay_ratio lr_scheduler.decay_type "
            "checkpoint.initial_load_path "
            "checkpoint.initial_load_model_only checkpoint.initial_load_in_hf checkpoint.initial_load_in_hf_quantized checkpoint.load_step "
            "checkpoint.exclude_from_loading",
    },
    "assumed": {
        "optimizer steps are simulated after backward; in backward, a layer's gradients are freed at once": "optimizer.early_step_in_backward",
        "which products are redone is that of the default": "activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns",
        "recompute is simulated to a block's end; an early stop saves its last product": "activation_checkpoint.early_stop",
        "kernels are Inductor's; another backend has other times": "compile.backend",
        "deterministic kernels are slower, by an amount that is not known here": "debug.deterministic debug.deterministic_warn_only",
        "steps of validation are left out; each takes about a third of a training step": "validation",
        "the first step is not saved": "checkpoint.enable_first_step_checkpoint",
        "a dry run or one process for all ranks; the run is that on real GPUs": "comm.mode",
        "modules that it imports may change the model, and are not seen": "experimental.custom_import",
        "scales are computed weight by weight: one small reduction a weight more": "quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp",
        "the time of the cast before a product is its usual one": "quantize.linear.mx.mxfp8_dim1_cast_kernel_choice",
        "replica groups that come and go are taken as fixed": "fault_tolerance",
    },
    "refused": {
        "whose class adds keys and models of its own; write the job with torchtitan's own keys and models, and leave it out":
            "job.custom_config_module experimental.custom_args_module",
        "which orders microbatches in its own way; name a schedule with parallelism.pipeline_parallel_schedule":
            "parallelism.pipeline_parallel_schedule_csv",
        "which emulates float8 without its speed; set it to false": "quantize.linear.float8.emulate",
        "which averages weights every some steps, not gradients in each; leave it out": "fault_tolerance.semi_sync_method",
    },
}
# Switches of sections that do nothing while they are off.
SWITCHES = {"validation": "validation.enable", "fault_tolerance": "fault_tolerance.enable"}
QUIET = "belongs to a section that is off unless its enable is true"
# Words that 0.2.2 lost, or that later releases added, and that a reader takes: (key, verdict, usual, release, why).
MORE = [
    ("job.use_for_integration_test", "ignored", False, "0.1.0", ""),
    ("parallelism.enable_compiled_autograd", "assumed", False, "0.2.0", "backward is compiled block by block, as forward is"),
    ("parallelism.pipeline_parallel_split_points", "refused", None, "0.1.0",
     "which names the first layer of each stage; needs parallelism.module_fqns_per_model_part or pipeline_parallel_layers_per_stage"),
    ("loss.chunks", "modelled", None, "0.3.0", ""),
    ("model.mtp_layers", "modelled", None, "0.3.0", ""),
    ("training.disable_cuda_graphs", "modelled", None, "0.3.0", ""),
    ("parallelism.enable_sequence_parallel", "modelled", None, "0.3.0", ""),
    ("parallelism.enable_fsdp_symm_mem", "assumed", False, "0.3.0", "transfers are NCCL's usual ones"),
    ("parallelism.spmd_backend", "ignored", None, "0.3.0", ""),
    ("profiler.*", "ignored", None, "0.3.0", ""),
    ("validator.*", "ignored", None, "0.3.0", ""),
    ("dataloader.*", "learning", None, "0.3.0", ""),
    ("tokenizer.*", "ignored", None, "0.3.0", ""),
    ("dump_folder", "ignored", None, "0.3.0", ""),
    ("hf_assets_path", "ignored", None, "0.3.0", ""),
]
# Choices that later releases extended.
LATER_CHOICES = ["parallelism.expert_parallel_comm_backend", "quantize.linear.float8.recipe_name"]
# Words of other releases that the reader neither takes nor renames (planner/recipes/torchtitan_releases.cpp).
OTHERS = {
    "torchtitan 0.1": "fault_tolerance.fragment_sync_delay fault_tolerance.fragment_update_alpha fault_tolerance.should_quantize "
                      "fault_tolerance.sync_steps",
    "torchtitan 0.3": "compile.passes override.imports",
    "torchtitan's experiment transformers_modeling_backend": "hf_transformers.model hf_transformers.tie_word_embeddings",
    "torchtitan after 0.3": "training.num_tokens_per_microbatch_per_dp_rank training.num_tokens_per_train_step training.max_context_length "
                            "parallelism.num_pp_microbatches",
}


def classes(file):
    return {node.name: node for node in ast.parse(Path(file).read_text()).body if isinstance(node, ast.ClassDef)}


def fields(known, name, prefix=""):
    """(key, annotation, default) of a dataclass and of the dataclasses in it."""
    for s in known[name].body:
        if not isinstance(s, ast.AnnAssign):
            continue
        annotation = ast.unparse(s.annotation)
        if annotation in known:
            yield from fields(known, annotation, f"{prefix}{s.target.id}.")
        else:
            yield prefix + s.target.id, s.annotation, default_of(s.value)


def default_of(value):
    if isinstance(value, ast.Call):  # field(default_factory=lambda: [...]) or field(default_factory=list)
        factory = value.keywords[0].value
        return ast.literal_eval(factory.body) if isinstance(factory, ast.Lambda) else []
    return ast.literal_eval(value)


def choices_of(annotation):
    for node in ast.walk(annotation):
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Literal":
            return [e.value for e in ast.walk(node.slice) if isinstance(e, ast.Constant)]
    return None


def verdict_of(key):
    found = ("modelled", "", "")
    for verdict, reasons in VERDICTS.items():
        for why, names in reasons.items():
            for name in names.split():
                if len(name) > len(found[2]) and (key == name or key.startswith(name + ".")):
                    found = (verdict, why, name)
    return found


def words(folder):
    out = {}
    for key, annotation, default in fields(classes(Path(folder) / "torchtitan/config/job_config.py"), "JobConfig"):
        verdict, why, _ = verdict_of(key)
        for section, switch in SWITCHES.items():
            if verdict == "assumed" and key.startswith(section + ".") and key != switch:
                verdict, why = "ignored", QUIET
        entry = {"is": verdict}
        if verdict != "modelled" and default is not None:
            entry["usual"] = default
        if verdict in ("modelled", "refused") and key not in LATER_CHOICES and (choices := choices_of(annotation)):
            entry["choices"] = choices
        if why:
            entry["why"] = why
        out[key] = entry
    for key, verdict, usual, release, why in MORE:
        out[key] = {"is": verdict, "release": release, **({"why": why} if why else {}), **({} if usual is None else {"usual": usual})}
    return out


if __name__ == "__main__":
    others = {word: owner for owner, names in OTHERS.items() for word in names.split()}
    print(json.dumps({"version": VERSION, "words": words(sys.argv[1]), "others": others}, indent=1, sort_keys=True))
