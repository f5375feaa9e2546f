package vfs

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Sync implements [File] with fdatasync(2), which leaves out the time stamps: it
// saves a write of the inode when the size did not change.
func (f osFile) Sync() error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var syncErr error
	err = conn.Control(func(fd uintptr) {
		for {
			syncErr = unix.Fdatasync(int(fd))
			if !errors.Is(syncErr, unix.EINTR) {
				return
			}
		}
	})
	if err == nil {
		err = syncErr
	}
	if err != nil {
		return fmt.Errorf("cannot sync %s: %w", f.Name(), err)
	}
	return nil
}
