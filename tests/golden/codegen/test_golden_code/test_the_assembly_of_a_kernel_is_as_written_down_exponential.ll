define i32 @weft.kernel.exp(ptr %frame, ptr noalias nocapture %p0, ptr noalias nocapture %p1) nounwind noinline {
entry:
  br label %body
body:
  %.1 = load <16 x float>, ptr %p0, align 4
  %.2 = fcmp olt <16 x float> %.1, splat (float 0xC05A000000000000)
  %.3 = select <16 x i1> %.2, <16 x float> splat (float 0xC05A000000000000), <16 x float> %.1
  %.4 = fcmp ogt <16 x float> %.3, splat (float 0x4056400000000000)
  %.5 = select <16 x i1> %.4, <16 x float> splat (float 0x4056400000000000), <16 x float> %.3
  %.6 = fmul contract <16 x float> %.5, splat (float 0x3FF7154760000000)
  %.7 = fadd contract <16 x float> %.6, splat (float 0x4168000000000000)
  %.8 = fsub <16 x float> %.7, splat (float 0x4168000000000000)
  %.9 = fmul contract <16 x float> %.8, splat (float 0x3FE6300000000000)
  %.10 = fsub contract <16 x float> %.5, %.9
  %.11 = fmul contract <16 x float> %.8, splat (float 0xBF2BD01060000000)
  %.12 = fsub contract <16 x float> %.10, %.11
  %.13 = fmul contract <16 x float> %.12, %.12
  %.14 = fmul contract <16 x float> splat (float 0x3FC5554920000000), %.12
  %.15 = fadd contract <16 x float> %.14, splat (float 0x3FDFFFFFC0000000)
  %.16 = fmul contract <16 x float> splat (float 0x3F8123A200000000), %.12
  %.17 = fadd contract <16 x float> %.16, splat (float 0x3FA5558F20000000)
  %.18 = fmul contract <16 x float> splat (float 0x3F56A23CC0000000), %.13
  %.19 = fadd contract <16 x float> %.18, %.17
  %.20 = fmul contract <16 x float> %.19, %.13
  %.21 = fadd contract <16 x float> %.20, %.15
  %.22 = fmul contract <16 x float> %.13, %.21
  %.23 = fadd contract <16 x float> %.22, %.12
  %.24 = fadd contract <16 x float> %.23, splat (float 0x3FF0000000000000)
  %.25 = select <16 x i1> %.2, <16 x float> splat (float 0x0000000000000000), <16 x float> %.24
  %.26 = bitcast <16 x float> %.7 to <16 x i32>
  %.27 = sub <16 x i32> %.26, splat (i32 1262485504)
  %.28 = ashr <16 x i32> %.27, splat (i32 1)
  %.29 = sub <16 x i32> %.27, %.28
  %.30 = add <16 x i32> %.28, splat (i32 127)
  %.31 = shl <16 x i32> %.30, splat (i32 23)
  %.32 = bitcast <16 x i32> %.31 to <16 x float>
  %.33 = fmul <16 x float> %.25, %.32
  %.34 = add <16 x i32> %.29, splat (i32 127)
  %.35 = shl <16 x i32> %.34, splat (i32 23)
  %.36 = bitcast <16 x i32> %.35 to <16 x float>
  %.37 = fmul <16 x float> %.33, %.36
  store <16 x float> %.37, ptr %p1, align 4
  ret i32 0
}

