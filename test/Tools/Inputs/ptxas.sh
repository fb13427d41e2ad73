#!/bin/sh
# A ptxas that says what $SAYS asks for: ptxas -arch=CHIP -v -O3 IN -o OUT [--split-compile=0]
out=$6
case $SAYS in
  old) if [ -n "$7" ]; then echo "ptxas fatal   : Unknown option '-split-compile'"; exit 1; fi ;;
  spill) echo "ptxas info    : Compiling entry function 'attention_r16' for 'sm_80'"
         echo "    16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads"
         echo "ptxas info    : Used 255 registers, used 1 barriers, 8 bytes smem" ;;
  spill16) # the narrowest class only, whatever its config
         if grep -q "entry attention_r16" "$4"; then
           echo "ptxas info    : Compiling entry function 'attention_r16' for 'sm_80'"
           echo "    16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads"
           echo "ptxas info    : Used 255 registers, used 1 barriers, 8 bytes smem"
         fi ;;
  spillall) # every tile class, whatever its config
         for name in $(grep -o 'entry attention_r[0-9]*' "$4" | sed 's/entry //'); do
           echo "ptxas info    : Compiling entry function '$name' for 'sm_80'"
           echo "    16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads"
           echo "ptxas info    : Used 255 registers, used 1 barriers, 8 bytes smem"
         done ;;
  serial) echo "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized" ;;
  serial64) if grep -q "entry attention_r64" "$4"; then
              echo "ptxas info    : (C7512) Potential Performance Loss: wgmma.mma_async instructions are serialized due to insufficient register resources for the function 'attention_r64'"
            fi ;;
  few64) if grep -q "entry attention_r64" "$4"; then
           echo "ptxas fatal   : (C7602) Insufficient registers (128) to compile instruction at line 7 in function attention_r64. Try to compile with register target of 142 or higher."
           exit 255
         fi ;;
  nothing) exit 0 ;;
  fail) echo "ptxas fatal   : something is wrong"; exit 3 ;;
esac
echo cubin > "$out"
