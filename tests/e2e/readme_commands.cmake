# Commands of README.md and docs/, run as a user would: the exit status that they must end with (0 unless STATUS says which
# and why), and what their output must say.
function(wt_command name)
  cmake_parse_arguments(arg "" "EXPECT;AFTER;STATUS;FRESH" "RUN" ${ARGN})
  if(NOT arg_STATUS)
    set(arg_STATUS 0)
  endif()
  add_test(NAME command_${name} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
    COMMAND ${CMAKE_COMMAND} -DSTATUS=${arg_STATUS} "-DEXPECT=${arg_EXPECT}" "-DFRESH=${arg_FRESH}"
      -P ${CMAKE_CURRENT_SOURCE_DIR}/e2e/run_command.cmake -- $<TARGET_FILE:windtunnel> ${arg_RUN})
  if(arg_AFTER)
    set_tests_properties(command_${name} PROPERTIES DEPENDS command_${arg_AFTER})
  endif()
endfunction()

set(out ${CMAKE_CURRENT_BINARY_DIR}/commands)
wt_command(merge_no_base STATUS 2 RUN lora merge tests/data/evaluation --base tests/data/evaluation -o ${out}/merged-none
  EXPECT "tests/data/evaluation: found no config.json, needs a folder of weights")
wt_command(plan_model RUN plan --model tests/data/models/dbrx_config.json --cluster hgx-h100 --gpus 256
  EXPECT "dbrx on 256 hgx-h100 GPUs.*Step time rests on [0-9]+ % measured, [0-9]+ % published")
wt_command(plan_set RUN plan --model llama3-8b --cluster hgx-h100 --gpus 128 --set tokens=2T --set max_seq_len=8192
  EXPECT "llama3-8b on 128 hgx-h100 GPUs: 2T tokens in.*Assumed: about 4M tokens a step, the failure rates of llama3;")
wt_command(plan_set_twice STATUS 2 RUN plan dbrx-3072-h100 --gpus 512 --set gpus=256
  EXPECT "--set gpus: found beside --gpus, which says it, too; give one of them")
wt_command(plan_set_misspelt STATUS 2 RUN plan dbrx-3072-h100 --set cluster.nic.bandwith=200Gb/s
  EXPECT "cluster.nic.bandwith: unknown key; did you mean 'cluster.nic.bandwidth'")
wt_command(plan_dbrx RUN plan dbrx-3072-h100 -o ${out}/plan EXPECT "12T tokens in.*the fewest days are proved.*Choice: .* gives up .* at predicted times.*What to measure next.*report.html")
wt_command(faults_compare RUN faults compare dbrx-3072-h100
  EXPECT "restart from storage is best.*restart from storage +6 +98.30 +97.86.*UNKNOWN.*hot_spares.activate +pays while.*3.79 +.0.13 +.0.31 +.0.39.*3.79 +2.92 min +20.7 s +never.*24.0 h +0.0043 +0.043 +0.26")
wt_command(faults_hot RUN faults compare dbrx-3072-h100 --set "hot_spares={activate: 50s, source: 'assumed: as ours'}"
  EXPECT "hot spares is best")
foreach(law "rsc1-lemons;98.78 +98.22" "rsc1;96.96 +96.46" "b200-lablup;98.33 +97.88" "byterobust-dense;99.26 +96.50"
    "llama3-laws;98.33 +98.01" "olmo-hybrid;83.96 +77.61")
  list(GET law 0 preset)
  list(GET law 1 goodputs)
  wt_command(faults_${preset} RUN faults compare dbrx-3072-h100 --set failures=${preset}
    EXPECT "restart from storage +[0-9]+ +${goodputs} ")
endforeach()
foreach(law "b200-lablup;    bad_nodes: {share: 0.0476, factor: 20}\n;;98.19 +97.69" "byterobust-dense;domain: leaf;domain: node;99.30 +99.11"
    "llama3-laws;    shape: 0.78\n;;98.29 +97.97"
    "olmo-hybrid;time: 222s\n    mean: 2334s;time: 2334s;82.42 +81.11")
  list(GET law 0 preset)
  list(GET law 1 has)
  list(GET law 2 instead)
  list(GET law 3 goodputs)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/configs/faults/rates/${preset}.yaml)
  file(READ ${CMAKE_SOURCE_DIR}/configs/faults/rates/${preset}.yaml plain)
  string(REPLACE "${has}" "${instead}" plain "${plain}")
  file(WRITE ${out}/plain-${preset}.yaml "${plain}")
  wt_command(faults_plain_${preset} RUN faults compare dbrx-3072-h100 --set failures=${out}/plain-${preset}.yaml
    EXPECT "restart from storage +[0-9]+ +${goodputs} ")
endforeach()
wt_command(faults_checked RUN faults compare dbrx-3072-h100
  --set "silent_errors={rate: llama3, verify: 1s, found_after: 1d, source: 'assumed: an example'}"
  EXPECT "verified rollback is best")
wt_command(faults_misspelt STATUS 2 RUN faults compare dbrx-3072-h100 --set hot_spare=50s EXPECT "did you mean 'hot_spares'")
wt_command(bench_worth RUN bench --for dbrx-3072-h100 --dry-run --worth 20s
  EXPECT "measures .* shapes.*leaves out .*not of these kernels: .* shapes take about [12][0-9.]+ s of the 20.0 s asked for")
wt_command(gate_history RUN gate history bench/studies/history/ratios -o ${out}/ratios.html EXPECT "series of [0-9]+ runs.*scatter")
wt_command(gate_history_selftest RUN gate selftest --history
  EXPECT "gives 10 of 10 lists .* 4 of 4 numbers.*all +97.7 % +94.5 % +85.5 % +96.2 %.*series with a point +9.4 % .Otava.s defaults 35.8 %")
wt_command(plan_falcon RUN plan falcon-180b EXPECT "3.5T tokens in.*optimizer +64 GPUs.*pipeline +8 stages.*tensor +8 GPUs.*Storage: not measured: the study.s profiles have no rows of a file system")
wt_command(falcon_cadence RUN whatif falcon-180b --sweep checkpoint.interval=auto,2h EXPECT "auto .* 15.68 +96.93 +134.3 .*2h .* 120 +90.55 +143.9 ")
wt_command(falcon_standstill RUN whatif falcon-180b --set checkpoint.copy_bandwidth=1.63MB/s --sweep checkpoint.interval=auto,2h
  --set "checkpoint.source='assumed: 4 TB at 6.7 GB/s while training stands still'" EXPECT "auto .* 129.2 +82.67 +156.6 .*2h .* 120 +82.74 +156.3 ")
wt_command(export_plan RUN export ${out}/plan --to torchtitan -o ${out}/job.toml AFTER plan_dbrx
  EXPECT "wrote .*job.toml.*not expressed in torchtitan 0.2.2: model: found dbrx.*next: NGPU=3072")
wt_command(eval_gauntlet RUN eval tests/data/evaluation/gauntlet.yaml --results tests/data/evaluation/metrics.json
  EXPECT "commonsense_reasoning +0.5500 .derived.  2 benchmarks.*world_knowledge +0.5000 .derived.*core_average +0.5250 .derived.")
wt_command(export_preset RUN export deepseek-v3-2048-h800 --to torchtitan -o ${out}/deepseek.toml
  EXPECT "fsdp_config.activation_checkpointing_target: found norm.moe_act.mla_up_proj, the file says products.*fsdp_config.optimizer_shard_degree: found 256, the file says 64")
wt_command(export_launch RUN export deepseek-v3-2048-h800 --to megatron-bridge
  EXPECT "#SBATCH --nodes=256 --ntasks-per-node=1 --gpus-per-node=8.*srun torchrun --nnodes 256 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint .head_node:29500 scripts/training/run_recipe.py")
wt_command(export_readme RUN export ${out}/plan --to megatron-core AFTER plan_dbrx EXPECT "pretrain_gpt.py.*--use-megatron-fsdp")
wt_command(import_run RUN import-run tests/data/recipes/mixtral.sh -o ${out}/mixtral.yaml
  EXPECT "mixtral on 128 GPUs: 1x16 expert 8 tensor 2.sequence pipeline 4x2.*assumed: overlap-grad-reduce: found none, which means false, taken as true.*changes learning alone: init-method-std")
wt_command(simulate_imported RUN simulate ${out}/mixtral.yaml --cluster hgx-h100 --stack megatron-core AFTER import_run
  EXPECT "One step of mixtral on hgx-h100.*128 ranks")
wt_command(plan_published RUN plan --model mixtral-8x7b --cluster aws-p4de --gpus 256
  EXPECT "mixtral-8x7b on 256 aws-p4de GPUs.*0 % measured, [0-9]+ % published.*[0-9]+ % derived from other GPUs.*as torchtitan uses them")  # attention and grouped products were not published on A100
wt_command(simulate RUN simulate ${out}/plan/plan.yaml --cluster hgx-h100 --stack torchtitan --routing dbrx-proxy-c4 -o ${out}/simulate
  AFTER plan_dbrx EXPECT "One step of dbrx-3072-h100 on hgx-h100")
wt_command(simulate_preset RUN simulate dbrx-3072-h100 --cluster hgx-h100
  EXPECT "One step of dbrx-3072-h100 on hgx-h100.*3072 ranks .4x768 expert 4.*Beyond what was measured.*Measured runs most like it.*When it is")
wt_command(simulate_torchtitan RUN simulate llama3-8b-128-h100 --cluster torchtitan-512-h100 --stack torchtitan
  EXPECT "128 ranks .1x128 expert 1.*100.0")
wt_command(explain RUN explain llama3-8b-128-h100 --log tests/data/job_logs/torchtitan.log --cluster torchtitan-512-h100 -o ${out}/explain
  EXPECT "2.87 s a step, 5,712 tokens/s/GPU: 9 % slower than predicted, inside.*MFU as the log says.*reserved, measured +63.4 GiB.*What to change")
set(traces tests/data/job_logs/traces)
wt_command(explain_ranks RUN explain llama3-8b-128-h100 --log tests/data/job_logs/torchtitan.log --cluster torchtitan-512-h100
  --trace ${traces}/rank0.json.gz --trace ${traces}/rank5.json.gz --trace ${traces}/rank9.json.gz
  --memory-snapshot tests/data/job_logs/memory.pickle
  EXPECT "reserved, snapshot +62.0 GiB, the highest in 5 recorded events.*Rank 5 is slow: it computes 230 ms a step longer.*slow rank makes 92 %.*5 +2820 +50 +0 +100.0.*Rank 5's step, by its trace")
wt_command(explain_other_trace STATUS 2 RUN explain llama3-8b-128-h100 --log tests/data/job_logs/torchtitan.log --cluster torchtitan-512-h100
  --trace ${traces}/of-64-ranks.json.gz EXPECT "found the trace of a job of 64 ranks, and the job has 128 GPUs")
wt_command(explain_same_rank STATUS 2 RUN explain llama3-8b-128-h100 --log tests/data/job_logs/torchtitan.log --cluster torchtitan-512-h100
  --trace ${traces}/rank0.json.gz --trace ${traces}/rank0.json.gz EXPECT "found rank 0, which is also that of")
wt_command(simulate_measured RUN simulate llama3-8b-128-h100 --cluster torchtitan-512-h100 --measured ${out}/explain/measured.yaml AFTER explain
  EXPECT "Your measured steps.*run.yaml +2.868 ")
wt_command(plan_measured RUN plan --model llama3-8b --cluster torchtitan-512-h100 --gpus 128 --set max_seq_len=8192
  --measured ${out}/explain/measured.yaml AFTER explain EXPECT "Your measured step run.yaml: 2.87 s; predicted 2.62 s without")
wt_command(plan_next_gpu RUN plan --model mixtral-8x7b --cluster example-next-gpu --gpus 72
  EXPECT "mixtral-8x7b on 72 example-next-gpu GPUs.*The data sheet of next-gpu is assumed")
wt_command(watch_log STATUS 1 RUN watch tests/data/job_logs/loss-jump.log --once
  EXPECT "loss-jump.log: 70 logged steps done, 1 signal in the end.*What still stands.*loss jump +loss +520 +2.551 +2.851 +3.079")
wt_command(watch_log_json STATUS 1 RUN watch tests/data/job_logs/loss-jump.log --once --last 100 --json
  EXPECT "last.:100,.older.:1,.*windtunnel.standing/1.*signals.:\\[\\]")
wt_command(watch_log_plan STATUS 2 RUN watch tests/data/job_logs/loss-jump.log --plan plan.json
  EXPECT "--plan: found with tests/data/job_logs/loss-jump.log, a log; needs the folder of a run")
wt_command(explain_other_job STATUS 2 RUN explain llama3-8b-128-h100 --log tests/data/job_logs/other-model.log --cluster hgx-h100
  EXPECT "GFLOP a token by the log's own throughput, and the job's model has 51.5; needs the log of this job")
wt_command(plan_gpu_hour RUN plan --model llama3-8b --cluster hgx-h100 --gpus 64 --set tokens=1T --gpu-hour 2.80
  EXPECT "Cost: .*USD")
wt_command(simulate_dualpipe STATUS 1 RUN simulate deepseek-v3-2048-h800 --cluster hgx-h800 --stack megatron-core
  EXPECT "2048 ranks .TP1 PP8 VPP2 EP64 DP256 dualpipe_v, distributed optimizer.*exchanges overlapped.*may not fit")  # 1: memory
wt_command(simulate_profile RUN simulate dbrx-3072-h100 --cluster hgx-h100 --profile tests/data/h100-profile.json
  EXPECT "Where the time goes.*Times of all-reduces inside a node: 25 points of the profile.*for them nic.latency and.nic.transport")
wt_command(plan_negative STATUS 2 RUN plan --model dbrx --cluster hgx-h100 --gpus -5  # 2: usage
  EXPECT "--gpus: found .-5., needs whole numbers from 1")
wt_command(plan_half_a_node STATUS 2 RUN plan --model llama3-8b --cluster hgx-h100 --gpus 12  # 2: usage
  EXPECT "windtunnel: --gpus: found 12, needs whole nodes of 8 GPUs .hgx-h100.")
wt_command(plan_too_many STATUS 2 RUN plan --model llama3-8b --cluster hgx-h100 --gpus 100000000000000000000000  # 2: usage
  EXPECT "--gpus: found .100000000000000000000000., needs whole numbers from 1")
wt_command(plan_scope RUN plan --model llama3-8b --cluster hgx-h100 --gpus 64
  EXPECT "Range:.*Searched: FSDP and HSDP, tensor, pipeline, with recompute and microbatch in bf16. Not searched: context parallelism of fewer than 4,096 tokens a rank, fp8")
wt_command(plan_options RUN plan --model llama3-8b --cluster hgx-h100 --cluster hgx-b200 --gpus 128..512 --set tokens=2T --finish-within 30d --prefer gpus -o ${out}/options
  EXPECT "128 hgx-(h100|b200) GPUs: 2T tokens.*the fewest GPUs of those that are done within 30.0 days.*chosen.*options.html")
wt_command(plan_too_late STATUS 1 RUN plan --model llama3-8b --cluster hgx-h100 --gpus 64 --finish-within 2d  # 1: not in time
  EXPECT "None is done within 2.0 days. The nearest, 64 hgx-h100 GPUs, takes .* shorter or .* tokens instead of 1T, or more GPUs, would do")
wt_command(plan_budget_unpriced STATUS 2 RUN plan --model llama3-8b --cluster hgx-h100 --gpus 64 --budget 5M
  EXPECT "plan: found --budget without prices of hgx-h100")
wt_command(plan_bad_preference STATUS 2 RUN plan dbrx-3072-h100 --prefer speed EXPECT "--prefer: found .speed., allowed days, gpus, money, energy")
wt_command(plan_bad_gpus STATUS 2 RUN plan dbrx-3072-h100 --gpus 512..256 EXPECT "--gpus: found 512..256, needs the smaller number first: 256..512")
wt_command(plan_bad_deadline STATUS 2 RUN plan dbrx-3072-h100 --finish-within soon EXPECT "--finish-within")
wt_command(plan_not_run STATUS 2 RUN whatif dbrx-3072-h100 --set stack=llm-foundry --set search.pipeline_parallel_degree=4
  EXPECT "stack llm-foundry: found pipeline_parallel_degree 4 .*which its trainer does not run")
wt_command(whatif_bad_value STATUS 2 RUN whatif dbrx-3072-h100 --sweep search.tie=0.01,7  # 2: usage
  EXPECT "whatif: search.tie=7: .*nothing was planned")
wt_command(whatif RUN whatif dbrx-3072-h100 --sweep cluster.nic.bandwidth=200Gb/s,400Gb/s -o ${out}/whatif
  EXPECT "cluster.nic.bandwidth.*whatif.csv")
wt_command(compare_offers RUN compare-offers olmoe-256-h100 made-up-h100 made-up-h200 made-up-h100-small -o ${out}/offers
  EXPECT "A tie: made-up-h200 and made-up-h100 cannot be told apart.* dearer.*break-even .USD/GPU-h..*2026-03-10, assumed: made up as an example.*Not priced: energy.*offers.html")
wt_command(compare_offers_no_price STATUS 2 RUN compare-offers olmoe-256-h100 configs/clusters/hgx-h100.yaml  # 2: no offer
  EXPECT "cluster: missing")
wt_command(calibrate_storage RUN calibrate tests/data/storage-profile.json EXPECT "a file system +write +4 +3 .assumed. +10 +1 +3 .assumed. +not seen.*a file system +read +4 +6 .assumed. +5 ")
wt_command(calibrate RUN calibrate ${CMAKE_SOURCE_DIR}/tests/data/h100-profile.json -o ${out}/machine.json EXPECT "gemm/forward/bf16|gemm/forward/fp16")
wt_command(profile_show RUN profile show ${CMAKE_SOURCE_DIR}/tests/data/h100-profile.json gemm EXPECT "1628 measurements of 17 kernels.*rows=")
wt_command(profile_diff RUN profile diff ${CMAKE_SOURCE_DIR}/tests/data/h100-profile.json ${CMAKE_SOURCE_DIR}/tests/data/h100-profile.json EXPECT "1628 measurements in common b is .0.0 %")
wt_command(validate_kernels RUN validate kernels configs/measurements/kernel_times.csv EXPECT "MFU is constant.*gemm, H100-SXM .together.")
wt_command(validate_collectives RUN validate collectives configs/measurements/collectives.csv
  EXPECT "all-reduce, one node .together..*with everything from a row's origin left out")
wt_command(validate_memory RUN validate memory configs/measurements/training_runs.csv EXPECT "bytes a parameter are constant.*peak allocated +31")
wt_command(validate_runs RUN validate runs configs/measurements/training_runs.csv EXPECT "dense, FSDP .together..*everything from a row's stack left out")
wt_command(validate_routing RUN validate routing configs/measurements/routing_step_times.csv EXPECT "FSDP over LAER.*recorded are FLEX, FSDP, LAER")
wt_command(validate_plans RUN validate plans
  EXPECT "21 of 21 published layouts are in the space.*what the planner chooses for the same model.*Korthikanti")
wt_command(data_pack RUN data pack --text LICENSE README.md -o ${out}/data --seq-len 64 FRESH ${out}/data EXPECT "2 files.*samples of 64")
wt_command(data_pack_again STATUS 2 RUN data pack --text LICENSE -o ${out}/data --seq-len 64 AFTER data_pack  # 2: usage
  EXPECT "commands/data: found a dataset, allowed is a new name.*replace it with --overwrite")
wt_command(data_check RUN data check ${out}/data --seq-len 64 AFTER data_pack
  EXPECT "compared with their xxh3_64.*every sample has 65 tokens.*sample 0: .*ok")
wt_command(data_check_length STATUS 1 RUN data check ${out}/data --seq-len 128 AFTER data_pack  # 1: a finding
  EXPECT "found 65 tokens, allowed are 128 or 129")
file(WRITE ${out}/pages.jsonl "{\"text\": \"To be, or not to be.\"}\n{\"text\": \"That is the question.\"}\n")
file(WRITE ${out}/answers.jsonl "{\"prompt\": \"To be?\", \"response\": \"Or not to be.\"}\n")
wt_command(data_pack_concat RUN data pack --text ${out}/pages.jsonl -o ${out}/concat --seq-len 16 --samples concat
  --compression zstd:7 --hashes sha256 FRESH ${out}/concat EXPECT "1 file, 41 B of text: 43 tokens in 2 samples of 16, 1 shard")
wt_command(data_check_concat RUN data check ${out}/concat AFTER data_pack_concat EXPECT "zstd:7 of .*compared with their sha256.*16 tokens.*ok")
wt_command(data_pack_text RUN data pack --text ${out}/pages.jsonl -o ${out}/pages --samples text FRESH ${out}/pages EXPECT "2 samples, a document each")
wt_command(data_pack_finetune RUN data pack --text ${out}/answers.jsonl -o ${out}/answers --samples finetune FRESH ${out}/answers
  EXPECT "20 tokens in 1 sample, an example each")
wt_command(report_run RUN report tests/data/run_resumed -o ${out}/run.html)
wt_command(report_run_text RUN report tests/data/run_resumed
  EXPECT "Step 40 of 40: loss .*[1-9][0-9]* steps lost and done again.*The course of the run.*Where the wall time went.*Restarts.*rank [0-9]+: .*Checkpoints")
wt_command(report_run_scores RUN report tests/data/run_resumed EXPECT "Scored by LLM Foundry.*arc_easy +10 .*0.7000 .measured.")
wt_command(report_no_run STATUS 2 RUN report docs EXPECT "docs: found no metrics.jsonl in it, needs the folder of a run")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/configs/runs/tiny-moe-mix.yaml)
file(READ ${CMAKE_SOURCE_DIR}/configs/runs/tiny-moe-mix.yaml mixed)
string(REPLACE "out/mix/" "${out}/mix/" mixed "${mixed}")
file(WRITE ${out}/tiny-moe-mix.yaml "${mixed}")
wt_command(mix_licences RUN data pack --text /usr/share/common-licenses -o ${out}/mix/licences --seq-len 128 FRESH ${out}/mix/licences EXPECT "samples of 128")
wt_command(mix_docs RUN data pack --text docs -o ${out}/mix/docs --seq-len 128 FRESH ${out}/mix/docs EXPECT "samples of 128" AFTER mix_licences)
wt_command(mix RUN data mix ${out}/tiny-moe-mix.yaml AFTER mix_docs
  EXPECT "batches 1 to 8.*licences +[0-9]+ +[0-9]+ +75.00 +75.00.*batches 9 to 12.*licences +[0-9]+ +[0-9]+ +50.00 +50.00")
wt_command(mix_json RUN data mix ${out}/tiny-moe-mix.yaml --json AFTER mix_docs EXPECT "\"share_of_samples\": 0.75")
string(REPLACE "${out}/mix/docs" "${out}/no-such" missing "${mixed}")
file(WRITE ${out}/mix-missing.yaml "${missing}")
wt_command(mix_missing STATUS 2 RUN data mix ${out}/mix-missing.yaml AFTER mix_docs
  EXPECT "stream 'docs': found no index.json in .*no-such")
wt_command(report RUN report ${out}/plan/report.json -o - AFTER plan_dbrx EXPECT "12T tokens in")
file(WRITE ${out}/kernel.log "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n")
wt_command(health RUN health --quick --storage ${out} --kernel-log ${out}/kernel.log -o ${out}/node.json STATUS 1  # 1: the XID is a finding
  EXPECT "Cordon 1 of 1 nodes.*XID 79.*restart the bare-metal node.*compute stress")
wt_command(health_judge RUN health judge ${out}/node.json STATUS 1 AFTER health EXPECT "XID 79")
wt_command(unknown STATUS 2 RUN pln EXPECT "did you mean 'plan'")                                            # 2: usage
wt_command(unknown_key STATUS 2 RUN whatif dbrx-3072-h100 --set searhc.budget=1 EXPECT "did you mean 'search'")
wt_command(unknown_cluster_key STATUS 2 RUN whatif dbrx-3072-h100 --sweep cluster.nic.bandwith=1Gb/s  # 2: usage
  EXPECT "did you mean 'cluster.nic.bandwidth' .*hgx-h100.yaml")  # 2: usage
add_test(NAME command_replay_summary COMMAND sh -c "python3 bench/studies/replay/summary.py bench/studies/replay/passes/*.csv"
  WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
set_tests_properties(command_replay_summary PROPERTIES
  PASS_REGULAR_EXPRESSION "2 passes: median error 2.3 % .*largest error 12.3 %")  # the README's and docs/accuracy.md's
add_test(NAME command_drill_record COMMAND python3 bench/studies/drills/drills.py WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
set_tests_properties(command_drill_record PROPERTIES PASS_REGULAR_EXPRESSION "[0-9]+ drills: [0-9]+ passed, [0-9]+ failed")
if(TARGET windtunnel-train)
  # Smaller than what the pages run, so that each takes seconds: four steps of tiny-moe, one rank killed.
  file(READ ${CMAKE_SOURCE_DIR}/configs/runs/tiny-moe.yaml run)
  string(REPLACE "max_duration: 12ba" "max_duration: 4ba" run "${run}")
  string(REPLACE "save_interval: 4ba" "save_interval: 2ba" run "${run}")
  string(REPLACE "out/data/seq128" "${out}/text" run "${run}")
  file(WRITE ${out}/run.yaml "${run}")
  file(WRITE ${out}/faults.yaml "name: one-kill\nrun: ${out}/run.yaml\n"
    "events:\n  - {who: {domain: rank, index: 0}, when: {step: 3, at: optimizer}, what: {kind: kill}}\n")
  wt_command(text RUN data pack --text /usr/share/common-licenses -o ${out}/text --seq-len 128 FRESH ${out}/text EXPECT "samples of 128")
  wt_command(train RUN train ${out}/run.yaml -o ${out}/train AFTER text FRESH ${out}/train
    EXPECT "4 steps of tiny-moe .2x2 expert 2.: loss .*rank 3: exposed communication.*profile.json")
  # Of docs/finetune.md.
  string(REPEAT "{\"prompt\": \"To be?\", \"response\": \"Or not to be.\"}\n{\"prompt\": \"What is it?\", \"response\": \"The question.\"}\n" 60 lines)
  file(WRITE ${out}/finetune.jsonl "${lines}")
  file(READ ${CMAKE_SOURCE_DIR}/configs/runs/tiny-moe-finetune.yaml run)
  string(REPLACE "max_duration: 12ba" "max_duration: 4ba" run "${run}")
  string(REPLACE "out/answers" "${out}/finetune" run "${run}")
  file(WRITE ${out}/finetune.yaml "${run}")
  wt_command(finetune_data RUN data pack --text ${out}/finetune.jsonl --samples finetune --seq-len 128 -o ${out}/finetune FRESH ${out}/finetune
    EXPECT "in 120 samples, an example each")
  wt_command(finetune_check RUN data check ${out}/finetune.yaml AFTER finetune_data EXPECT "turns: json.*learned: [0-9]+ tokens.*ok")
  wt_command(finetune RUN train ${out}/finetune.yaml -o ${out}/finetuned AFTER finetune_data FRESH ${out}/finetuned
    EXPECT "4 steps of tiny-moe-finetune .2x2 expert 2.: loss ")
  wt_command(gate_record RUN gate record ${out}/train/profile.json --history ${out}/perf AFTER train FRESH ${out}/perf EXPECT "Recorded run .*Nothing new")
  wt_command(gate RUN gate ${out}/train/profile.json ${out}/train/profile.json --junit ${out}/gate.xml AFTER train EXPECT "Nothing could be decided")
  wt_command(watch RUN watch ${out}/train AFTER train EXPECT "4 steps done, nothing was wrong")
  wt_command(drill RUN drill ${out}/faults.yaml -o ${out}/drill AFTER text FRESH ${out}/drill EXPECT "Recovery was exact")
  wt_command(rehearse RUN train --rehearse ${out}/plan/plan.yaml -o ${out}/rehearsal AFTER plan_dbrx
    EXPECT "4 of 40 layers.*measured here.*the plan's.*plan.json, p99 routing")
  # docs/lora.md: a base is exported, and an adapter trained on it.
  file(WRITE ${out}/lora-base.yaml "${run}\ncallbacks: {hf_checkpointer: {save_folder: ${out}/base}}\n")
  set(peft "peft_config: {peft_type: LORA, r: 8, lora_alpha: 16, target_modules: [q_proj, v_proj]}")
  string(REPLACE "model:\n" "model:\n  ${peft}\n" adapted "${run}")
  file(WRITE ${out}/lora.yaml "${adapted}\nload_path: ${out}/base\ncallbacks: {hf_checkpointer: {save_folder: ${out}/adapter}}\n")
  file(WRITE ${out}/lora-recipe.yaml "model:\n  name: hf_causal_lm\n  pretrained_model_name_or_path: ${out}/base\n  ${peft}\n"
    "max_seq_len: 128\nglobal_train_batch_size: 16\nmax_duration: 4ba\noptimizer: {name: decoupled_adamw, lr: 0.001}\n")
  wt_command(lora_base RUN train ${out}/lora-base.yaml -o ${out}/base-run AFTER finetune_data FRESH ${out}/base-run EXPECT "4 steps of tiny-moe")
  wt_command(lora_train RUN train ${out}/lora.yaml -o ${out}/lora-run AFTER lora_base FRESH ${out}/lora-run EXPECT "4 steps of tiny-moe")
  wt_command(lora_merge RUN lora merge ${out}/adapter -o ${out}/merged AFTER lora_train FRESH ${out}/merged
    EXPECT "wrote the weights of .*base in .*merged: the adapter is added to 4 of")
  wt_command(lora_merge_nothing STATUS 2 RUN lora merge ${out}/base -o ${out}/merged-nothing AFTER lora_base EXPECT "adapter_config.json")
  wt_command(lora_import RUN import-run ${out}/lora-recipe.yaml --gpus 8 -o ${out}/lora-imported.yaml AFTER lora_base
    EXPECT "lora-recipe on 8 GPUs")
  set_tests_properties(command_lora_base command_lora_train PROPERTIES TIMEOUT 300)
  set_tests_properties(command_train command_finetune PROPERTIES TIMEOUT 300)
  set_tests_properties(command_drill PROPERTIES TIMEOUT 300)
  set_tests_properties(command_rehearse PROPERTIES RUN_SERIAL TRUE TIMEOUT 300)
endif()
