# The tier of each test, a label of ctest: fast, ci or nightly (docs/tests.md).
set(nightly  # sweeps of minutes
  property_compared_layouts python_recipe_defaults
  command_validate_plans command_validate_runs command_validate_collectives command_validate_kernels
  command_faults_plain_b200-lablup command_faults_plain_byterobust-dense command_faults_plain_llama3-laws command_faults_plain_olmo-hybrid)
set(not_fast  # a minute of a core
  property_bounds)

foreach(test ${nightly} ${not_fast})
  if(NOT TEST ${test})
    message(FATAL_ERROR "tests/tiers.cmake: found ${test}, which is no test")
  endif()
endforeach()
# The longest begin first: ctest knows no times of its own on a clean clone.
foreach(test golden_validate unit_rank_processes unit_plan)
  if(TEST ${test})  # not all are without LibTorch
    set_tests_properties(${test} PROPERTIES COST 1000)
  endif()
endforeach()
get_property(tests DIRECTORY PROPERTY TESTS)
foreach(test ${tests})
  get_property(labels TEST ${test} PROPERTY LABELS)
  if("nightly" IN_LIST labels OR test IN_LIST nightly)
    set(tier nightly)
  elseif(test MATCHES "^(unit|property|golden|style|gate|profile|validation|atomic)_|^(gate|profile)$" AND NOT test IN_LIST not_fast)
    set(tier fast)
  else()
    set(tier ci)
  endif()
  list(REMOVE_ITEM labels ${tier})
  set_property(TEST ${test} PROPERTY LABELS ${labels} ${tier})
endforeach()
