package truth

import (
	"io/fs"
	"syscall"
	"time"
)

// identity returns what changes when a file is replaced, written or touched.
func identity(fi fs.FileInfo) fileID {
	id := fileID{size: fi.Size(), mtime: fi.ModTime().UnixNano()}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		id.dev, id.ino = st.Dev, st.Ino
		id.ctime = time.Unix(st.Ctim.Unix()).UnixNano()
	}
	return id
}

// openFlags keep a named pipe in the place of a file from blocking.
const openFlags = syscall.O_NONBLOCK
