#include "textflag.h"

DATA quotes<>+0(SB)/8, $0x2222222222222222
DATA quotes<>+8(SB)/8, $0x2222222222222222
DATA quotes<>+16(SB)/8, $0x2222222222222222
DATA quotes<>+24(SB)/8, $0x2222222222222222
GLOBL quotes<>(SB), RODATA|NOPTR, $32

DATA backslashes<>+0(SB)/8, $0x5c5c5c5c5c5c5c5c
DATA backslashes<>+8(SB)/8, $0x5c5c5c5c5c5c5c5c
DATA backslashes<>+16(SB)/8, $0x5c5c5c5c5c5c5c5c
DATA backslashes<>+24(SB)/8, $0x5c5c5c5c5c5c5c5c
GLOBL backslashes<>(SB), RODATA|NOPTR, $32

DATA controls<>+0(SB)/8, $0x1f1f1f1f1f1f1f1f
DATA controls<>+8(SB)/8, $0x1f1f1f1f1f1f1f1f
DATA controls<>+16(SB)/8, $0x1f1f1f1f1f1f1f1f
DATA controls<>+24(SB)/8, $0x1f1f1f1f1f1f1f1f
GLOBL controls<>(SB), RODATA|NOPTR, $32

// func copyPlainAVX2(dst, src *byte, n int) (copied int, high uint64)
TEXT ·copyPlainAVX2(SB), NOSPLIT, $0-40
	MOVQ    dst+0(FP), DI
	MOVQ    src+8(FP), SI
	MOVQ    n+16(FP), CX
	XORQ    AX, AX                     // bytes copied
	VMOVDQU quotes<>(SB), Y1
	VMOVDQU backslashes<>(SB), Y2
	VMOVDQU controls<>(SB), Y3
	VPXOR   Y7, Y7, Y7                 // all bytes seen, ored
	SUBQ    $32, CX                    // the last place where a step may begin
	JLT     done

step:
	VMOVDQU   (SI)(AX*1), Y0
	VMOVDQU   Y0, (DI)(AX*1)
	VPOR      Y0, Y7, Y7
	VPCMPEQB  Y0, Y1, Y4
	VPCMPEQB  Y0, Y2, Y5
	VPMINUB   Y0, Y3, Y6               // equal to the byte itself at 1F and below
	VPCMPEQB  Y0, Y6, Y6
	VPOR      Y4, Y5, Y4
	VPOR      Y4, Y6, Y4
	VPMOVMSKB Y4, DX
	TESTL     DX, DX
	JNZ       special
	ADDQ      $32, AX
	CMPQ      AX, CX
	JLE       step
	JMP       done

special:
	BSFL DX, DX
	ADDQ DX, AX

done:
	VPMOVMSKB Y7, DX
	VZEROUPPER
	MOVQ      AX, copied+24(FP)
	MOVLQZX   DX, DX
	MOVQ      DX, high+32(FP)
	RET
