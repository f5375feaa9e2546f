// Package apitype holds the JSON that inquest's HTTP API takes and gives, for
// the server and its clients.
package apitype
