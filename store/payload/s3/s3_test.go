package s3

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"go.uber.org/goleak"

	"inquest/store/payload"
	"inquest/store/payload/payloadtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const bucket = "payloads"

// serve runs an S3 server until the test ends.
func serve(t testing.TB, versioned bool) Config {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket(bucket); err != nil {
		t.Fatal(err)
	}
	if versioned {
		config := gofakes3.VersioningConfiguration{Status: gofakes3.VersioningEnabled}
		if err := backend.SetVersioningConfiguration(bucket, config); err != nil {
			t.Fatal(err)
		}
	}
	srv := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(srv.Close)
	transport := srv.Client().Transport
	return Config{
		Endpoint: strings.TrimPrefix(srv.URL, "http://"), Bucket: bucket, Region: "us-east-1",
		AccessKey: "key", SecretKey: "secret", Insecure: true, PathStyle: true, Transport: transport,
	}
}

func TestStore(t *testing.T) {
	for name, versioned := range map[string]bool{"Plain": false, "Versioned": true} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, versioned)
			payloadtest.Store(t, func(t testing.TB, place string) payload.Blobs {
				c := c
				c.Prefix = place
				b, err := New(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				return b
			})
		})
	}
}
