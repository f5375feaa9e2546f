package folder

import (
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"inquest/journal/vfs"
	"inquest/store/payload"
	"inquest/store/payload/payloadtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, fsys vfs.FS, root string) *Folder {
	t.Helper()
	f, err := New(fsys, root)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestStoreOS(t *testing.T) {
	root := t.TempDir()
	payloadtest.Store(t, func(t testing.TB, place string) payload.Blobs {
		return open(t, vfs.OS{}, filepath.Join(root, place))
	})
}

func TestStoreMem(t *testing.T) {
	m := vfs.NewMem(1)
	payloadtest.Store(t, func(t testing.TB, place string) payload.Blobs {
		return open(t, m, filepath.Join("/payloads", place))
	})
}
