/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI: a profiler without events. Everything may be subscribed to and enabled. No
 * buffer is requested or returned, because no kernel runs.
 */
#include "setup.h"
#include "standin.h"

enum profile_result { PROFILE_OK = 0, PROFILE_NO_MORE = 12 };

EXPORT enum profile_result
cuptiGetVersion(uint32_t *version)
{
    *version = (uint32_t)standin_setup()->cuda_version * 10;
    return PROFILE_OK;
}

EXPORT enum profile_result
cuptiGetResultString(int result, const char **text)
{
    *text = result == PROFILE_OK ? "CUPTI_SUCCESS" : "CUPTI_ERROR_UNKNOWN";
    return PROFILE_OK;
}

EXPORT enum profile_result
cuptiSubscribe(void **subscriber, void *callback, void *data)
{
    static int only;
    (void)callback, (void)data;
    *subscriber = &only;
    return PROFILE_OK;
}

EXPORT enum profile_result
cuptiGetCallbackName(int domain, uint32_t callback, const char **name)
{
    (void)domain, (void)callback;
    *name = "unknown";
    return PROFILE_OK;
}

EXPORT enum profile_result
cuptiActivityGetNextRecord(uint8_t *buffer, size_t bytes, void **record)
{
    (void)buffer, (void)bytes;
    *record = NULL;
    return PROFILE_NO_MORE;
}

EXPORT enum profile_result
cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped)
{
    (void)context, (void)stream;
    *dropped = 0;
    return PROFILE_OK;
}

EXPORT enum profile_result
cuptiActivityPopExternalCorrelationId(int kind, uint64_t *last)
{
    (void)kind;
    if (last)
        *last = 0;
    return PROFILE_OK;
}

#define NOTHING(name)                                                                    \
    EXPORT enum profile_result name(void)                                                \
    {                                                                                    \
        return PROFILE_OK;                                                               \
    }
NOTHING(cuptiActivityDisable)
NOTHING(cuptiActivityEnable)
NOTHING(cuptiActivityEnableCudaEventDeviceTimestamps)
NOTHING(cuptiActivityEnableDriverApi)
NOTHING(cuptiActivityEnableRuntimeApi)
NOTHING(cuptiActivityFlushAll)
NOTHING(cuptiActivityPushExternalCorrelationId)
NOTHING(cuptiActivityRegisterCallbacks)
NOTHING(cuptiActivityRegisterTimestampCallback)
NOTHING(cuptiActivitySetAttribute)
NOTHING(cuptiEnableCallback)
NOTHING(cuptiEnableDomain)
NOTHING(cuptiFinalize)
NOTHING(cuptiUnsubscribe)
