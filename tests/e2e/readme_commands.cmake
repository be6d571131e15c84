# Commands of README.md and docs/, run as a user would, with what their output must say.
function(wt_command name)
  cmake_parse_arguments(arg "" "EXPECT;AFTER" "RUN" ${ARGN})
  add_test(NAME command_${name} COMMAND windtunnel ${arg_RUN} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(command_${name} PROPERTIES PASS_REGULAR_EXPRESSION "${arg_EXPECT}")
  if(arg_AFTER)
    set_tests_properties(command_${name} PROPERTIES DEPENDS command_${arg_AFTER})
  endif()
endfunction()

set(out ${CMAKE_CURRENT_BINARY_DIR}/commands)
wt_command(plan_model RUN plan --model tests/data/models/dbrx_config.json --cluster hgx-h100 --gpus 256
  EXPECT "dbrx on 256 GPUs.*Step time rests on [0-9]+ % measured, [0-9]+ % published")
wt_command(plan_dbrx RUN plan dbrx-3072-h100 -o ${out}/plan EXPECT "12T tokens take.*the fastest is proved.*report.html")
wt_command(simulate RUN simulate ${out}/plan/plan.yaml --cluster hgx-h100 --profile h100-published --routing dbrx-proxy-c4 -o ${out}/simulate
  AFTER plan_dbrx EXPECT "One step of dbrx-3072-h100 on hgx-h100")
wt_command(whatif RUN whatif dbrx-3072-h100 --sweep scale.network_bandwidth=0.5,1 EXPECT "scale.network_bandwidth")
wt_command(calibrate RUN calibrate h100-published -o ${out}/machine.json EXPECT "gemm/forward/bf16|gemm/forward/fp16")
wt_command(validate_kernels RUN validate kernels configs/measurements/kernel_times.csv EXPECT "MFU is constant.*gemm, H100-SXM .together.")
wt_command(validate_collectives RUN validate collectives configs/measurements/collectives.csv
  EXPECT "all-reduce, one node .together..*with everything from a row's source left out")
wt_command(data_pack RUN data pack --text LICENSE README.md -o ${out}/data --seq-len 64 EXPECT "2 files.*samples of 64")
wt_command(report RUN report ${out}/plan/report.json -o - AFTER plan_dbrx EXPECT "12T tokens take")
wt_command(unknown RUN pln EXPECT "did you mean 'plan'")
wt_command(unknown_key RUN whatif dbrx-3072-h100 --set searhc.budget=1 EXPECT "did you mean 'search'")
if(TARGET windtunnel-train)
  wt_command(rehearse RUN train --rehearse ${out}/plan/plan.yaml -o ${out}/rehearsal AFTER plan_dbrx
    EXPECT "4 of 40 layers.*measured here.*the plan's.*plan.json, p99 routing")
  set_tests_properties(command_rehearse PROPERTIES RESOURCE_LOCK trainer PROCESSORS 2 TIMEOUT 120)
endif()
