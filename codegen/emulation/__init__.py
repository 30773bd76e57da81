"""Trees of C sources on emulated boards: images of them, and their runs in QEMU."""
