# The tier of each test, a label of ctest: fast, ci or nightly (CONTRIBUTING.md, "Tiers").
set(nightly  # sweeps of minutes
  property_compared_layouts
  command_validate_plans)
set(not_fast  # half a minute of a core or more
  property_bounds property_replay property_run_days property_run_on_simgrid property_run_protection)

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
