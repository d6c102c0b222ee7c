# titan_compile_options(TARGET): warnings and sanitizers for a target of Titan or of a plugin.

function(titan_compile_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers -ffp-contract=off)
  if(TITAN_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(TITAN_SANITIZER)
    # with a sanitizer, g++ 12 crashes in this pass on functions with several target versions
    target_compile_options(${target} PRIVATE -fno-ipa-cp)
  endif()
  if(TITAN_SANITIZER STREQUAL "address")
    target_compile_options(${target} PRIVATE -fsanitize=address,undefined -fno-sanitize=vptr -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=address,undefined -fno-sanitize=vptr)
  elseif(TITAN_SANITIZER STREQUAL "thread")
    target_compile_options(${target} PRIVATE -fsanitize=thread)
    target_link_options(${target} PRIVATE -fsanitize=thread)
  endif()
endfunction()

# titan_cold(TARGET): for a target whose speed does not matter to steps and tokens. -Og compiles in two thirds of -O2's time.
function(titan_cold target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Og>)
endfunction()

# titan_use_base_pch(TARGET): for a target without torch. Inside Titan's own tree such targets share one precompiled header.
function(titan_use_base_pch target)
  if(TARGET titan_base_pch)
    set_target_properties(${target} PROPERTIES DEFINE_SYMBOL "")
    target_precompile_headers(${target} REUSE_FROM titan_base_pch)
  endif()
endfunction()

# titan_use_torch(TARGET): links LibTorch and, inside Titan's own tree, shares one small precompiled header.
function(titan_use_torch target)
  target_link_libraries(${target} PRIVATE titan::torch)
  if(TARGET titan_torch_pch)
    set_target_properties(${target} PROPERTIES DEFINE_SYMBOL "")
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")  # the header was compiled with -fPIC; an executable would take -fPIE
      set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
      target_compile_options(${target} PRIVATE -fPIC)
    endif()
    target_precompile_headers(${target} REUSE_FROM titan_torch_pch)
  endif()
endfunction()
