declare <8 x float> @llvm.maximum.v8f32(<8 x float>, <8 x float>)
declare <4 x float> @llvm.maximum.v4f32(<4 x float>, <4 x float>)
declare <2 x float> @llvm.maximum.v2f32(<2 x float>, <2 x float>)
declare float @llvm.maximum.f32(float, float)
define i32 @weft.kernel.softmax(ptr %frame, ptr noalias nocapture %p0, ptr noalias nocapture %p1) nounwind noinline {
entry:
  %.1 = alloca [4 x i8], align 64
  %.2 = alloca [4 x i8], align 64
  %.3 = alloca [32 x i8], align 64
  %.61 = alloca [32 x i8], align 64
  br label %body
body:
  br label %for.1
for.1:
  %for.1.i = phi i64 [ 0, %body ], [ %for.1.n, %for.next.2 ]
  store <8 x float> splat (float 0xFFF0000000000000), ptr %.3, align 4
  %.4 = mul i64 %for.1.i, 8
  %.5 = getelementptr float, ptr %p0, i64 %.4
  %.6 = load <8 x float>, ptr %.5, align 4
  %.7 = call nsz <8 x float> @llvm.maximum.v8f32(<8 x float> splat (float 0xFFF0000000000000), <8 x float> %.6)
  store <8 x float> %.7, ptr %.3, align 4
  %.8 = load <4 x float>, ptr %.3, align 4
  %.9 = getelementptr float, ptr %.3, i64 4
  %.10 = load <4 x float>, ptr %.9, align 4
  %.11 = call nsz <4 x float> @llvm.maximum.v4f32(<4 x float> %.8, <4 x float> %.10)
  store <4 x float> %.11, ptr %.3, align 4
  %.12 = load <2 x float>, ptr %.3, align 4
  %.13 = getelementptr float, ptr %.3, i64 2
  %.14 = load <2 x float>, ptr %.13, align 4
  %.15 = call nsz <2 x float> @llvm.maximum.v2f32(<2 x float> %.12, <2 x float> %.14)
  store <2 x float> %.15, ptr %.3, align 4
  %.16 = load float, ptr %.3, align 4
  %.17 = getelementptr float, ptr %.3, i64 1
  %.18 = load float, ptr %.17, align 4
  %.19 = call nsz float @llvm.maximum.f32(float %.16, float %.18)
  store float %.19, ptr %.3, align 4
  %.20 = call nsz float @llvm.maximum.f32(float 0xFFF0000000000000, float %.19)
  store float %.20, ptr %.1, align 4
  %.21 = insertelement <8 x float> poison, float %.20, i64 0
  %.22 = shufflevector <8 x float> %.21, <8 x float> poison, <8 x i32> zeroinitializer
  %.23 = fsub contract <8 x float> %.6, %.22
  %.24 = fcmp olt <8 x float> %.23, splat (float 0xC05A000000000000)
  %.25 = select <8 x i1> %.24, <8 x float> splat (float 0xC05A000000000000), <8 x float> %.23
  %.26 = fcmp ogt <8 x float> %.25, splat (float 0x4056400000000000)
  %.27 = select <8 x i1> %.26, <8 x float> splat (float 0x4056400000000000), <8 x float> %.25
  %.28 = fmul contract <8 x float> %.27, splat (float 0x3FF7154760000000)
  %.29 = fadd contract <8 x float> %.28, splat (float 0x4168000000000000)
  %.30 = fsub <8 x float> %.29, splat (float 0x4168000000000000)
  %.31 = fmul contract <8 x float> %.30, splat (float 0x3FE6300000000000)
  %.32 = fsub contract <8 x float> %.27, %.31
  %.33 = fmul contract <8 x float> %.30, splat (float 0xBF2BD01060000000)
  %.34 = fsub contract <8 x float> %.32, %.33
  %.35 = fmul contract <8 x float> %.34, %.34
  %.36 = fmul contract <8 x float> splat (float 0x3FC5554920000000), %.34
  %.37 = fadd contract <8 x float> %.36, splat (float 0x3FDFFFFFC0000000)
  %.38 = fmul contract <8 x float> splat (float 0x3F8123A200000000), %.34
  %.39 = fadd contract <8 x float> %.38, splat (float 0x3FA5558F20000000)
  %.40 = fmul contract <8 x float> splat (float 0x3F56A23CC0000000), %.35
  %.41 = fadd contract <8 x float> %.40, %.39
  %.42 = fmul contract <8 x float> %.41, %.35
  %.43 = fadd contract <8 x float> %.42, %.37
  %.44 = fmul contract <8 x float> %.35, %.43
  %.45 = fadd contract <8 x float> %.44, %.34
  %.46 = fadd contract <8 x float> %.45, splat (float 0x3FF0000000000000)
  %.47 = select <8 x i1> %.24, <8 x float> splat (float 0x0000000000000000), <8 x float> %.46
  %.48 = bitcast <8 x float> %.29 to <8 x i32>
  %.49 = sub <8 x i32> %.48, splat (i32 1262485504)
  %.50 = ashr <8 x i32> %.49, splat (i32 1)
  %.51 = sub <8 x i32> %.49, %.50
  %.52 = add <8 x i32> %.50, splat (i32 127)
  %.53 = shl <8 x i32> %.52, splat (i32 23)
  %.54 = bitcast <8 x i32> %.53 to <8 x float>
  %.55 = fmul <8 x float> %.47, %.54
  %.56 = add <8 x i32> %.51, splat (i32 127)
  %.57 = shl <8 x i32> %.56, splat (i32 23)
  %.58 = bitcast <8 x i32> %.57 to <8 x float>
  %.59 = fmul <8 x float> %.55, %.58
  %.60 = getelementptr float, ptr %p1, i64 %.4
  store <8 x float> %.59, ptr %.60, align 4
  store <8 x float> splat (float 0x0000000000000000), ptr %.61, align 4
  %.62 = fadd contract <8 x float> splat (float 0x0000000000000000), %.59
  store <8 x float> %.62, ptr %.61, align 4
  %.63 = load <4 x float>, ptr %.61, align 4
  %.64 = getelementptr float, ptr %.61, i64 4
  %.65 = load <4 x float>, ptr %.64, align 4
  %.66 = fadd contract <4 x float> %.63, %.65
  store <4 x float> %.66, ptr %.61, align 4
  %.67 = load <2 x float>, ptr %.61, align 4
  %.68 = getelementptr float, ptr %.61, i64 2
  %.69 = load <2 x float>, ptr %.68, align 4
  %.70 = fadd contract <2 x float> %.67, %.69
  store <2 x float> %.70, ptr %.61, align 4
  %.71 = load float, ptr %.61, align 4
  %.72 = getelementptr float, ptr %.61, i64 1
  %.73 = load float, ptr %.72, align 4
  %.74 = fadd reassoc contract float %.71, %.73
  store float %.74, ptr %.61, align 4
  %.75 = fadd contract float 0x0000000000000000, %.74
  store float %.75, ptr %.2, align 4
  %.76 = fdiv contract float 0x3FF0000000000000, %.75
  %.77 = insertelement <8 x float> poison, float %.76, i64 0
  %.78 = shufflevector <8 x float> %.77, <8 x float> poison, <8 x i32> zeroinitializer
  %.79 = fmul contract <8 x float> %.59, %.78
  store <8 x float> %.79, ptr %.60, align 4
  br label %for.next.2
for.next.2:
  %for.1.n = add nsw i64 %for.1.i, 1
  %.80 = icmp ne i64 %for.1.n, 4
  br i1 %.80, label %for.1, label %for.done.3
for.done.3:
  ret i32 0
}

