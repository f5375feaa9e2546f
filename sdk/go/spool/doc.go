// Package spool keeps log records on disk until an OTLP server has them.
//
// A [Writer] appends records to files in a folder and returns only when they are
// durable. A [Shipper] sends what the files hold to an OTLP/HTTP server and
// remembers, durably, how far the server has acknowledged. Both may run in one
// process, or the shipper in a process of its own ([StartWatchdog], or the
// command inquest-ship), so that what an application wrote is delivered even
// after the application is gone.
//
// # Format
//
// The format is that of inquest's Python library, so that one shipper serves
// applications of both languages. A spool is a folder, used by any number of
// writers and one shipper at a time:
//
//	<time>-<pid>-<random>-<number>.spool   lines, appended only; time is Unix nanoseconds in hex
//	<same>.pos                             {"offset": bytes acknowledged, "done": nothing will follow}
//	<same>.tmp                             a file that its writer has not begun yet
//	aside/                                 what could not be shipped, with the reason
//	watchdog.lock                          locked by the shipper that is at work
//
// A line is "CRC SP JSON LF": eight lower-case hex digits of the CRC-32 (IEEE) of
// the JSON's bytes, a space, the JSON on one line, a line feed. The first line is
// the header, {"inquest.spool": 1, "resource": …, "scope": …}; each other line is
// one log record. All three are written as OTLP/JSON writes them.
//
// Rules that every writer and shipper keeps:
//
//   - A writer locks its file (exclusive flock) and writes the header before the
//     file gets its name, and holds the lock while it may write. So a .spool file
//     that can be locked is final.
//   - A line counts when its line feed is there and its checksum agrees. What
//     follows the last line feed of a final file was torn by a crash: nobody was
//     told that it was written. It is set aside.
//   - A file is appended to only. Cut is nothing but a torn line.
//   - The shipper stores .pos by rename and fsync after the server's answer, and
//     before it reads on. A crash between the two sends a batch again; each record
//     carries the attribute event.id, the same both times, by which the
//     second can be recognised.
//   - Nothing goes that is not shipped. A shipped file is kept for seven days, or
//     until the folder needs the room.
//
// # Assumptions
//
// What fsync has returned for survives a crash of the process and of the machine.
// The folder is on a local file system with flock.
package spool
