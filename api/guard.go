package api

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"inquest/api/apitype"
)

// guard refuses requests that a web page made a browser send.
//
// A server on a loopback address has no other protection than that strangers
// cannot reach it. A page can: by a name of its own that resolves to 127.0.0.1
// (DNS rebinding), which the Host header gives away, or by sending requests
// across sites, which browsers mark.
func (s *server) guard(next http.Handler) (http.Handler, error) {
	cross := http.NewCrossOriginProtection()
	for _, origin := range s.cfg.AllowedOrigins {
		if err := cross.AddTrustedOrigin(origin); err != nil {
			return nil, fmt.Errorf("cannot allow the origin %q: %w: write it like https://grafana.example", origin, err)
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if !s.hostAllowed(r) {
			writeError(w, native, &apiError{
				code: http.StatusForbidden, kind: kindForbidden,
				err:  errorf("the host %q is not a name of this server", r.Host),
				hint: "ask it as localhost, or add the name to the allowed hosts",
			})
			return
		}
		if err := cross.Check(r); err != nil || s.crossSiteRead(r) {
			writeError(w, native, &apiError{
				code: http.StatusForbidden, kind: kindForbidden,
				err:  errorf("requests from pages of other sites are refused"),
				hint: "add the page's origin to the allowed origins",
			})
			return
		}
		next.ServeHTTP(w, r)
	}), nil
}

// crossSiteRead tells whether a foreign page asks. It could not read the
// answer, but it could make the server work. Following a link is allowed.
func (s *server) crossSiteRead(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Site") == "cross-site" &&
		r.Header.Get("Sec-Fetch-Mode") != "navigate" &&
		!slices.Contains(s.cfg.AllowedOrigins, r.Header.Get("Origin"))
}

func (s *server) hostAllowed(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if ok && !loopbackAddr(addr) {
		return true // reachable for others anyway: authentication is the server's
	}
	host := hostname(r.Host)
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || slices.Contains(s.cfg.AllowedHosts, host) {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// loopbackAddr tells whether only this machine reaches addr over the network.
func loopbackAddr(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// hostname is the Host header without port, brackets and final dot.
func hostname(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// wrap puts limits around a route and answers its errors.
func (s *server) wrap(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, s.limits.BodyBytes)
		tracked := &trackedWriter{ResponseWriter: w}
		ctx, err := s.run(rt, tracked, r)
		if err == nil {
			return
		}
		e := classify(ctx, err)
		if e.code >= 500 && e.kind != kindTimeout && e.kind != kindNotImplemented {
			s.log.Warn("a request failed", "path", r.URL.Path, "error", err.Error())
		}
		if !tracked.started {
			writeError(w, rt.dialect, e)
		}
	})
}

// run does the request's work. The context it returns is the one that the work
// was done under.
func (s *server) run(rt route, w http.ResponseWriter, r *http.Request) (context.Context, error) {
	ctx := r.Context()
	if rt.kind == cheap {
		return ctx, rt.handle(w, r)
	}
	if err := r.ParseForm(); err != nil && rt.kind == query {
		return ctx, formError(err)
	}
	timeout, turns := s.limits.QueryTimeout, s.queries
	if rt.kind == investigate {
		timeout, turns = s.limits.InvestigateTimeout, s.probes
	} else if v := r.Form.Get("timeout"); v != "" {
		d, err := apitype.ParseDuration(v)
		if err != nil {
			return ctx, badParam("timeout", err)
		}
		if d > 0 {
			timeout = min(timeout, d)
		}
	}
	done, err := s.turn(ctx, turns)
	if err != nil {
		return ctx, err
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	s.catchUp(ctx, w)
	return ctx, rt.handle(w, r.WithContext(ctx))
}

// turn waits until the request may run. The caller calls done afterwards.
func (s *server) turn(ctx context.Context, turns chan struct{}) (done func(), err error) {
	done = func() { <-turns }
	select {
	case turns <- struct{}{}:
		return done, nil
	default:
	}
	timer := time.NewTimer(s.limits.QueueWait)
	defer timer.Stop()
	select {
	case turns <- struct{}{}:
		return done, nil
	case <-timer.C:
		return nil, &apiError{
			code: http.StatusTooManyRequests, kind: kindTooMany,
			err:  errorf("%d requests of this kind run already", cap(turns)),
			hint: "ask again in a moment", retryAfter: true,
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// catchUp makes what was acknowledged before the request visible to it. Where
// that takes too long the answer comes all the same and says so.
func (s *server) catchUp(ctx context.Context, w http.ResponseWriter) {
	if s.cfg.CatchUp == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.limits.CatchUpWait)
	defer cancel()
	if err := s.cfg.CatchUp(ctx); err != nil {
		w.Header().Set(apitype.HeaderLag, headerText("the newest records may be missing: "+err.Error()))
	}
}

// trackedWriter knows whether an answer has begun.
type trackedWriter struct {
	http.ResponseWriter
	started bool
}

func (w *trackedWriter) WriteHeader(code int) {
	w.started = true
	w.ResponseWriter.WriteHeader(code)
}

func (w *trackedWriter) Write(p []byte) (int, error) {
	w.started = true
	return w.ResponseWriter.Write(p)
}

// Unwrap lets [http.ResponseController] flush.
func (w *trackedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
