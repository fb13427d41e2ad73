import os
import shutil
import subprocess

import lit.formats

config.name = "attn-mlir"
config.test_format = lit.formats.ShTest(True)
config.suffixes = [".mlir", ".test"]
config.excludes = ["lit.cfg.py", "lit.site.cfg.py", "Inputs", "CMakeLists.txt"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.attn_obj_root, "test")

path = [os.path.join(config.attn_obj_root, "bin"), config.llvm_tools_dir, "/usr/local/cuda/bin", os.environ.get("PATH", "")]
config.environment["PATH"] = os.pathsep.join(path)
config.environment["FILECHECK_OPTS"] = "--enable-var-scope --allow-unused-prefixes=false"
for name in ("HOME", "CUDA_VISIBLE_DEVICES", "ATTN_CACHE_DIR", "OMP_NUM_THREADS", "ATTN_PYTHON"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
config.substitutions.append(("%attn_src_root", config.attn_src_root))
config.substitutions.append(("%attn_obj_root", config.attn_obj_root))
config.substitutions.append(("%llvm_libs", os.path.join(os.path.dirname(config.llvm_tools_dir), "lib")))
config.substitutions.append(("%mlir_dir", config.mlir_dir))
config.substitutions.append(("%python", os.environ.get("ATTN_PYTHON", "python3")))

full = os.pathsep.join(path)
if shutil.which("ptxas", path=full):
    config.available_features.add("ptxas")
if shutil.which("mlir-runner", path=full):
    config.available_features.add("mlir-runner")
if os.path.exists("/dev/nvidia0"):
    config.available_features.add("cuda")

# GPU kernels on emulated warps: a host compiler and numpy.
if shutil.which("clang-22", path=full) and subprocess.run([os.environ.get("ATTN_PYTHON", "python3"), "-c", "import numpy"], capture_output=True).returncode == 0:
    config.available_features.add("emulator")
