package accel

const (
	debugPort = 0xe9 // isa-debugcon: a byte written here comes out of QEMU's chardev
	exitPort  = 0xf4 // isa-debug-exit: a byte v written here ends QEMU with status 2v+1
	firstMark = 'A'  // written when the boot sector is reached
	lastMark  = 'B'  // written after counting
	sectorLen = 512
)

// bootSector is a whole operating system: 16-bit code that a PC's firmware loads at
// 0000:7c00 and jumps to.
func bootSector() []byte {
	code := []byte{
		0xfa,            // cli                 no interrupts
		0xb0, firstMark, // mov  al, 'A'
		0xe6, debugPort, // out  0xe9, al
		0x66, 0xb9, 0x80, 0xf0, 0xfa, 0x02, // mov  ecx, 50000000
		0x66, 0x49, // dec  ecx            <─┐
		0x75, 0xfc, // jnz  -4             ──┘
		0xb0, lastMark, // mov  al, 'B'
		0xe6, debugPort, // out  0xe9, al
		0x31, 0xc0, // xor  ax, ax
		0xe6, exitPort, // out  0xf4, al       leave QEMU
		0xf4,       // hlt                 should it not leave
		0xeb, 0xfd, // jmp  -3
	}
	sector := make([]byte, sectorLen)
	copy(sector, code)
	sector[510], sector[511] = 0x55, 0xaa // what makes it bootable
	return sector
}
