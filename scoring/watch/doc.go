// Package watch
package watch
