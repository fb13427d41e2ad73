# Thin wrappers: a dialect, a library, a tool, in one line each. Sources are
# globbed, so adding a file needs no edit here.

# One precompiled header with MLIR's core and the dialects that we lower
# through; every MLIR-side library reuses it (a file then compiles in seconds).
function(attn_add_pch)
  add_library(AttnPCH OBJECT ${PROJECT_SOURCE_DIR}/lib/PCH.cpp)
  set_target_properties(AttnPCH PROPERTIES PCH_INSTANTIATE_TEMPLATES ON)
  target_include_directories(AttnPCH SYSTEM PRIVATE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  target_compile_options(AttnPCH PRIVATE -fno-rtti -fno-exceptions -Wall)
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    target_compile_options(AttnPCH PRIVATE -Xclang -fno-pch-timestamp)
  endif()
  target_precompile_headers(AttnPCH PRIVATE ${PROJECT_SOURCE_DIR}/lib/PCH.h)
endfunction()

# attn_add_library(NAME [libraries...]): an MLIR-side static library from the
# .cpp files of the current folder.
function(attn_add_library name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  add_library(${name} STATIC ${sources})
  target_include_directories(${name} SYSTEM PUBLIC
    $<BUILD_INTERFACE:${MLIR_INCLUDE_DIRS}> $<BUILD_INTERFACE:${LLVM_INCLUDE_DIRS}>)
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<INSTALL_INTERFACE:include>)
  target_compile_options(${name} PRIVATE -fno-rtti -fno-exceptions -Wall)
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    target_compile_options(${name} PRIVATE -Xclang -fno-pch-timestamp)
  endif()
  target_precompile_headers(${name} REUSE_FROM AttnPCH)
  target_link_libraries(${name} PUBLIC ${ARGN} MLIR LLVM)
  add_dependencies(${name} AttnTableGen)
  set_property(GLOBAL APPEND PROPERTY ATTN_LIBS ${name})
  install(TARGETS ${name} EXPORT AttnMLIRTargets ARCHIVE DESTINATION lib)
endfunction()

# attn_add_tool(NAME [libraries...]): a tool from the .cpp files of the current folder.
function(attn_add_tool name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  add_executable(${name} ${sources})
  # The precompiled header is built with -fPIC; CMake would give an executable -fPIE.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIC)
  target_compile_options(${name} PRIVATE -fno-rtti -fno-exceptions -Wall)
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    target_compile_options(${name} PRIVATE -Xclang -fno-pch-timestamp)
  endif()
  target_precompile_headers(${name} REUSE_FROM AttnPCH)
  target_link_libraries(${name} PRIVATE ${ARGN})
  install(TARGETS ${name} EXPORT AttnMLIRTargets RUNTIME DESTINATION bin)
endfunction()

# attn_tablegen(FILE.td OUT.inc flags...): generates OUT.inc and adds it to AttnTableGen.
function(attn_tablegen td out)
  set(LLVM_TARGET_DEFINITIONS ${td})
  mlir_tablegen(${out} ${ARGN})
  set_property(GLOBAL APPEND PROPERTY ATTN_TABLEGEN_OUTPUTS ${CMAKE_CURRENT_BINARY_DIR}/${out})
  set(TABLEGEN_OUTPUT ${TABLEGEN_OUTPUT} PARENT_SCOPE)
endfunction()

# attn_add_doc(OUT FILE.td flags...): build/docs/OUT.md, part of the target attn-docs.
function(attn_add_doc out td)
  if(NOT TARGET attn-docs)
    add_custom_target(attn-docs)
  endif()
  set(LLVM_TARGET_DEFINITIONS ${td})
  tablegen(MLIR ${out}.md ${ARGN})
  set(doc ${PROJECT_BINARY_DIR}/docs/${out}.md)
  add_custom_command(OUTPUT ${doc}
    COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_CURRENT_BINARY_DIR}/${out}.md ${doc}
    DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/${out}.md)
  add_custom_target(${out}Doc DEPENDS ${doc})
  add_dependencies(attn-docs ${out}Doc)
endfunction()

# attn_add_dialect(Name dialect): <Name>Dialect/Types/Attrs/Enums/Ops declarations and definitions from <Name>Ops.td
# (the umbrella file), in the current folder.
function(attn_add_dialect name dialect)
  set(LLVM_TARGET_DEFINITIONS ${name}Ops.td)
  mlir_tablegen(${name}Dialect.h.inc -gen-dialect-decls -dialect=${dialect})
  mlir_tablegen(${name}Dialect.cpp.inc -gen-dialect-defs -dialect=${dialect})
  mlir_tablegen(${name}Ops.h.inc -gen-op-decls)
  mlir_tablegen(${name}Ops.cpp.inc -gen-op-defs)
  mlir_tablegen(${name}Types.h.inc -gen-typedef-decls -typedefs-dialect=${dialect})
  mlir_tablegen(${name}Types.cpp.inc -gen-typedef-defs -typedefs-dialect=${dialect})
  mlir_tablegen(${name}Attrs.h.inc -gen-attrdef-decls -attrdefs-dialect=${dialect})
  mlir_tablegen(${name}Attrs.cpp.inc -gen-attrdef-defs -attrdefs-dialect=${dialect})
  mlir_tablegen(${name}Enums.h.inc -gen-enum-decls)
  mlir_tablegen(${name}Enums.cpp.inc -gen-enum-defs)
  add_public_tablegen_target(Attn${name}IncGen)
  add_dependencies(AttnTableGen Attn${name}IncGen)
  attn_add_doc(${name}Dialect ${name}Ops.td -gen-dialect-doc -dialect=${dialect})
endfunction()

# attn_add_passes(Name): Passes.h.inc from Passes.td in the current folder.
function(attn_add_passes name)
  set(LLVM_TARGET_DEFINITIONS Passes.td)
  mlir_tablegen(Passes.h.inc -gen-pass-decls -name=${name})
  add_public_tablegen_target(Attn${name}PassesIncGen)
  add_dependencies(AttnTableGen Attn${name}PassesIncGen)
  attn_add_doc(${name}Passes Passes.td -gen-pass-doc)
endfunction()
