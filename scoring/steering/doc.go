// Package steering
package steering
