// Package s3 keeps payloads in S3-compatible object storage, as objects with
// the names that package folder gives its files. See docs/payloads.md.
package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"inquest/store/payload"
)

// Config says where the objects lie. Each process that writes needs a prefix
// of its own.
type Config struct {
	Endpoint string `mapstructure:"endpoint"` // host and port, such as s3.eu-central-1.amazonaws.com
	Bucket   string `mapstructure:"bucket"`   // it must exist
	Prefix   string `mapstructure:"prefix"`   // such as recorder-1; may be empty
	Region   string `mapstructure:"region"`   // asked of the server when empty
	// AccessKey and SecretKey: when both are empty, those of the environment
	// (AWS_ACCESS_KEY_ID, …) or of the machine's role are used.
	AccessKey string `mapstructure:"access_key"`
	SecretKey string `mapstructure:"secret_key"`
	Insecure  bool   `mapstructure:"insecure"`   // HTTP without TLS
	PathStyle bool   `mapstructure:"path_style"` // bucket in the path, for servers without wildcard DNS
	// Retries is how often a failed request is repeated; default 3.
	Retries int `mapstructure:"retries"`
	// Transport replaces the HTTP transport, for proxies, own certificates and
	// tests. Nil is the default of minio-go.
	Transport http.RoundTripper `mapstructure:"-"`
}

const defaultRetries = 3

// Validate says what is missing.
func (c *Config) Validate() error {
	switch {
	case c.Endpoint == "":
		return errors.New("endpoint is missing: give host and port of the S3 server")
	case strings.Contains(c.Endpoint, "://"):
		return fmt.Errorf("endpoint %q has a scheme: give host and port alone, and insecure: true for HTTP", c.Endpoint)
	case c.Bucket == "":
		return errors.New("bucket is missing")
	case (c.AccessKey == "") != (c.SecretKey == ""):
		return errors.New("access_key and secret_key belong together: give both or none")
	case c.Retries < 0:
		return errors.New("retries is below zero")
	}
	return nil
}

// Bucket is a [payload.Blobs] in a bucket.
type Bucket struct {
	client *minio.Client
	bucket string
	prefix string // empty, or with a slash at its end
	// versioned: the bucket keeps older versions, which removal must reach.
	versioned bool
}

var _ payload.Blobs = (*Bucket)(nil)

// New connects to the server and asks whether the bucket is there and keeps
// versions.
func New(ctx context.Context, c Config) (*Bucket, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("cannot use S3 for payloads: %w", err)
	}
	client, err := minio.New(c.Endpoint, options(c))
	if err != nil {
		return nil, fmt.Errorf("cannot use S3 for payloads: %w", err)
	}
	found, err := client.BucketExists(ctx, c.Bucket)
	if err != nil {
		return nil, fmt.Errorf("cannot reach bucket %s at %s: %w", c.Bucket, c.Endpoint, classify(err))
	}
	if !found {
		return nil, fmt.Errorf("there is no bucket %s at %s: make it, or check the setting", c.Bucket, c.Endpoint)
	}
	versions, err := client.GetBucketVersioning(ctx, c.Bucket)
	if err != nil && minio.ToErrorResponse(err).Code != minio.NotImplemented {
		return nil, fmt.Errorf("cannot ask whether bucket %s keeps versions (without the right to s3:GetBucketVersioning erasure might miss old ones): %w", c.Bucket, classify(err))
	}
	b := &Bucket{client: client, bucket: c.Bucket, prefix: strings.Trim(c.Prefix, "/")}
	if b.prefix != "" {
		b.prefix += "/"
	}
	b.versioned = versions.Enabled() || versions.Suspended()
	return b, nil
}

// classify marks an error that may go away by itself: no answer, or one that
// says that the server is not well.
func classify(err error) error {
	var resp minio.ErrorResponse
	refused := errors.As(err, &resp) && resp.StatusCode != 0 && resp.StatusCode < 500 &&
		resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusRequestTimeout
	if refused || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w: %w", payload.ErrUnavailable, err)
}

func options(c Config) *minio.Options {
	o := &minio.Options{
		Creds:        credentials.NewStaticV4(c.AccessKey, c.SecretKey, ""),
		Secure:       !c.Insecure,
		Region:       c.Region,
		Transport:    c.Transport,
		MaxRetries:   1 + c.Retries,
		BucketLookup: minio.BucketLookupAuto,
	}
	if c.Retries == 0 {
		o.MaxRetries = 1 + defaultRetries
	}
	if c.AccessKey == "" {
		o.Creds = credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{},
		})
	}
	if c.PathStyle {
		o.BucketLookup = minio.BucketLookupPath
	}
	return o
}

// Open opens the payload store in a bucket, or makes one.
func Open(ctx context.Context, c Config, o payload.Options) (payload.Store, error) {
	b, err := New(ctx, c)
	if err != nil {
		return nil, err
	}
	return payload.Open(ctx, b, o)
}

// Write implements [payload.Blobs]. S3 keeps an object durably and whole before
// it answers. The requests are not one: when a later one fails, the earlier
// objects stay, which the contract allows.
func (b *Bucket) Write(ctx context.Context, blobs ...payload.Blob) error {
	for _, blob := range blobs {
		_, err := b.client.PutObject(ctx, b.bucket, b.prefix+blob.Name, bytes.NewReader(blob.Data), int64(len(blob.Data)), minio.PutObjectOptions{
			DisableMultipart: true, SendContentMd5: true, ContentType: "application/octet-stream",
			// Signed as a stream, an empty object would be sent without a length,
			// which servers refuse.
			DisableContentSha256: len(blob.Data) == 0,
		})
		if err != nil {
			return fmt.Errorf("cannot write object %s: %w", blob.Name, classify(err))
		}
		if b.versioned {
			if err := b.removeVersions(ctx, blob.Name, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// Read implements [payload.Blobs].
func (b *Bucket) Read(ctx context.Context, name string, limit int64) ([]byte, error) {
	object, err := b.client.GetObject(ctx, b.bucket, b.prefix+name, minio.GetObjectOptions{})
	if err != nil {
		return nil, missing(name, err)
	}
	data, err := io.ReadAll(io.LimitReader(object, limit+1))
	if closeErr := object.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, missing(name, err)
	}
	return data, nil
}

func missing(name string, err error) error {
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return fmt.Errorf("object %s: %w", name, fs.ErrNotExist)
	}
	return fmt.Errorf("cannot read object %s: %w", name, classify(err))
}

// Remove implements [payload.Blobs]. In a bucket with versions all of them go,
// with the marks of removal.
func (b *Bucket) Remove(ctx context.Context, names ...string) error {
	for _, name := range names {
		var err error
		if b.versioned {
			err = b.removeVersions(ctx, name, false)
		} else {
			err = b.client.RemoveObject(ctx, b.bucket, b.prefix+name, minio.RemoveObjectOptions{})
		}
		if err != nil && minio.ToErrorResponse(err).Code != minio.NoSuchKey {
			return fmt.Errorf("cannot remove object %s: %w", name, classify(err))
		}
	}
	return nil
}

// removeVersions removes what the bucket keeps of an object, but not the
// latest version where that is to stay.
func (b *Bucket) removeVersions(ctx context.Context, name string, keepLatest bool) error {
	key := b.prefix + name
	var ids []string
	for o := range b.client.ListObjectsIter(ctx, b.bucket, minio.ListObjectsOptions{Prefix: key, WithVersions: true, Recursive: true}) {
		if o.Err != nil {
			return fmt.Errorf("cannot list the versions of object %s: %w", name, classify(o.Err))
		}
		if o.Key == key && (!o.IsLatest || !keepLatest) {
			ids = append(ids, o.VersionID)
		}
	}
	for _, id := range ids {
		err := b.client.RemoveObject(ctx, b.bucket, key, minio.RemoveObjectOptions{VersionID: id})
		if err != nil {
			return fmt.Errorf("cannot remove version %s of object %s: %w", id, name, classify(err))
		}
	}
	return nil
}

// List implements [payload.Blobs]. Object storage has nothing half-written.
func (b *Bucket) List(ctx context.Context, dir string, fn func(payload.Entry) error) error {
	for o := range b.client.ListObjectsIter(ctx, b.bucket, minio.ListObjectsOptions{Prefix: b.prefix + dir + "/", Recursive: true}) {
		if o.Err != nil {
			return fmt.Errorf("cannot list the objects below %s: %w", dir, classify(o.Err))
		}
		modified := o.LastModified
		if modified.IsZero() {
			modified = time.Unix(1, 0)
		}
		if err := fn(payload.Entry{Name: strings.TrimPrefix(o.Key, b.prefix), Size: o.Size, Modified: modified}); err != nil {
			return err
		}
	}
	return nil
}

// Close implements [payload.Blobs].
func (b *Bucket) Close() error { return nil }
